from .schedules import Schedule1F1B, ScheduleInterleaved1F1B  # noqa: F401
from .stage import PipelineStage  # noqa: F401
