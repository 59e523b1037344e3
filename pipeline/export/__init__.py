"""A trained network to a SavedModel or to CTranslate2, and either in this process."""
