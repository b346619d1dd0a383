"""Scenes of the shared clips that are joined into videos with known cuts and people.

Each is one shot; a person checked who is in it, and, where given, who speaks.
"""

from __future__ import annotations

from benchmarks.perception.joining import Scene

_CARLO, _OMAR, _JEFF = ("carlo",), ("omar",), ("jeff",)
_SPEAKER, _PRESENTER, _CHAIR = ("speaker",), ("presenter",), ("chair",)
_TYPIST, _HOSTS = ("typist",), ("host", "guest")

PEOPLE = (
    Scene("googlework_short.mp4", 22_400, 24_400, _CARLO),
    Scene("jackson_hole_speech.mp4", 0, 5_000, _SPEAKER, "speaker"),
    Scene("mie_sample.mp4", 5_000, 8_800, _JEFF),
    Scene("visualvoice_interview.mp4", 0, 5_000, _HOSTS),
    Scene("pbs_spacetime_quantum_information.mp4", 120_000, 124_400, _PRESENTER, "presenter"),
    Scene("of_meeting.mp4", 5_000, 9_000, _CHAIR, "chair"),
    Scene("avi_testvideo.mp4", 25_400, 28_600, ("thinker",)),
    Scene("w3c_perspective.mp4", 10_800, 14_600, _TYPIST),
    Scene("googlework_short.mp4", 29_400, 31_000, _OMAR),
    Scene("avi_testvideo.mp4", 7_200, 8_400, ("beard",)),
    Scene("jackson_hole_speech.mp4", 90_000, 94_000, _SPEAKER, "speaker"),
    Scene("googlework_short.mp4", 27_200, 28_000, _CARLO),
    Scene("pbs_spacetime_quantum_information.mp4", 420_000, 425_000, _PRESENTER, "presenter"),
    Scene("visualvoice_interview.mp4", 9_000, 14_000, _HOSTS),
    Scene("of_meeting.mp4", 46_000, 51_000, _CHAIR, "chair"),
    Scene("avi_testvideo.mp4", 52_400, 54_400, ("editor",)),
    Scene("mie_sample.mp4", 3_000, 5_000, _JEFF),
    Scene("w3c_perspective.mp4", 5_640, 6_600, _TYPIST),
    Scene("avi_testvideo.mp4", 18_400, 20_400, ("walker",)),
    Scene("jackson_hole_speech.mp4", 150_000, 154_000, _SPEAKER, "speaker"),
    Scene("pbs_spacetime_quantum_information.mp4", 740_000, 745_000, _PRESENTER, "presenter"),
    Scene("googlework_short.mp4", 31_000, 32_400, _OMAR),
    Scene("avi_testvideo.mp4", 43_600, 45_400, ("gamer",)),
    Scene("of_meeting.mp4", 52_000, 56_000, _CHAIR),
    Scene("googlework_short.mp4", 25_400, 26_400, _CARLO),
)

_LECTURE, _LESSON = "jackson_hole_speech.mp4", "pbs_spacetime_quantum_information.mp4"
_BY_CHAIR, _BY_JEFF = ("of_meeting.mp4", 46_000), ("mie_sample.mp4", 4_600)
_BY_TYPIST, _BY_PRESENTER = ("w3c_perspective.mp4", 10_800), (_LESSON, 740_000)

COMPANY = (
    Scene(_LECTURE, 0, 5_000, ("speaker", "chair"), "speaker", _BY_CHAIR),
    Scene(_LESSON, 420_000, 425_000, ("presenter", "chair"), "presenter", _BY_CHAIR),
    Scene(_LECTURE, 90_000, 94_000, ("speaker", "jeff"), "speaker", _BY_JEFF),
    Scene(_LESSON, 740_000, 744_000, ("presenter", "jeff"), "presenter", _BY_JEFF),
    Scene(_LECTURE, 0, 5_000, ("speaker", "presenter"), "speaker", _BY_PRESENTER),
    Scene(_LESSON, 120_000, 123_600, ("presenter", "typist"), "presenter", _BY_TYPIST),
    Scene(_LECTURE, 150_000, 154_000, ("speaker", "chair"), "speaker", _BY_CHAIR),
    Scene(_LESSON, 420_000, 425_000, ("presenter", "chair"), "presenter", _BY_CHAIR),
    Scene(_LECTURE, 0, 5_000, ("speaker", "chair"), "speaker", _BY_CHAIR),
    Scene(_LESSON, 740_000, 744_000, ("presenter", "jeff"), "presenter", _BY_JEFF),
)
"""Two people are always in view, in changing company: nobody ever speaks alone."""
COMPANY_CLIP_MS = 9_000
"""Clips of about two scenes: both voices are heard in most."""

_THREE = ("left", "middle", "right")


def _talk(start_ms: int, end_ms: int, heard: str = "") -> Scene:
    return Scene("msdwild_00001.mp4", start_ms, end_ms, _THREE, heard)


TALK = (
    _talk(0, 960),
    _talk(960, 5_640, "middle"),
    _talk(5_640, 11_320, "left"),
    _talk(11_320, 11_600),
    _talk(11_600, 12_080, "middle"),
    _talk(12_080, 12_320),
    _talk(12_320, 12_520, "left"),
    _talk(12_520, 14_440, "middle"),
    _talk(14_440, 15_240),
    _talk(15_240, 24_240, "middle"),
)
"""A whole clip of three people, who are always in view; who speaks is as its annotation says.

Nobody is given where two speak at once.
"""


def _meeting(start_ms: int, end_ms: int, *people: str, heard: str = "chair") -> Scene:
    return Scene("of_meeting.mp4", start_ms, end_ms, people, heard)


MEETING = (
    _meeting(0, 1_960, heard=""),
    _meeting(1_960, 10_160, "chair"),
    _meeting(10_160, 11_200, "chair", "texter"),
    _meeting(11_200, 15_400, "texter"),
    _meeting(15_400, 19_000, "texter", "reader"),
    _meeting(19_000, 19_400, "reader"),
    _meeting(19_400, 20_600, "reader", "dancer"),
    _meeting(20_600, 23_800, "dancer"),
    _meeting(23_800, 24_400, "dancer", "listener"),
    _meeting(24_400, 27_960, "listener"),
    _meeting(27_960, 28_960),
    _meeting(28_960, 44_000, heard=""),
    _meeting(44_000, 51_960, "chair"),
    _meeting(51_960, 56_800, "chair", heard=""),
    _meeting(56_800, 61_600, heard=""),
)
"""A whole clip: one speaks, also while the camera shows four others, and then a narrator."""
