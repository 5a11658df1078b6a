"""python -m pytest -p stageline.hta.overlay_plugin: tests of the installed hta with the engine before it."""
from .overlay import accelerate

accelerate()
