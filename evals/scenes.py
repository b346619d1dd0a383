"""Scenes of the shared clips that are joined into videos with known cuts and people.

Each is one shot; a person checked who is in it, and, where given, who speaks.
"""

from __future__ import annotations

from evals.joining import Scene

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
