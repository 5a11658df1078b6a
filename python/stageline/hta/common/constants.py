"""Numbers that stand for nodes and streams."""
CUDA_MAX_LAUNCH_QUEUE_PER_STREAM = 1024
NON_EXISTENT_NODE_INDEX = -2
NULL_NODE_INDEX = -1
