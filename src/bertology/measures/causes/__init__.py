"""What several analyses of `causes` measure alike."""
