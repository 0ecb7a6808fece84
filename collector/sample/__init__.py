"""The sample trace: a made-up minute on one machine, for newcomers and for the documentation.

`SCENES` says what can be seen in it, in which program and when.
"""

from collector.sample.scenes import SCENES, Scene
from collector.sample.story import write_sample

__all__ = ["SCENES", "Scene", "write_sample"]
