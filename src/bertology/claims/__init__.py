"""Published findings as data, and the judge that says whether they hold for a model."""
