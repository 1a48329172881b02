"""What analyses are made of: the measures, questions and material that several of them, or long ones, share."""
