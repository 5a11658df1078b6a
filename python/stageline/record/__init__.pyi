"""stageline_record's types under its name next to the program."""
from stageline_record import *
from stageline_record import mstx as mstx
from stageline_record import nvtx as nvtx
