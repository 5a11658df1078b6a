# Placeholder until web/ exists: sets STAGELINE_WEB_BUNDLE_CC to the generated source, or nothing.
set(STAGELINE_WEB_BUNDLE_CC "")
