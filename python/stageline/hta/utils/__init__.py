"""Small helpers on names, folders and frames."""
