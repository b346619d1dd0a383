"""The one exception tree. Messages tell the user what to do.

HomerError
├── InputError            the user's input cannot be used            (exit 2)
│   ├── MediaError        a file is empty, damaged or not media
│   ├── NotFound          nothing goes by that name
│   ├── Ambiguous         several things go by that name
│   ├── AccessDenied      the user may not do this
│   └── Busy              another process is at it
├── SetupError            something is missing on this machine       (exit 3)
│   ├── WeightsMissing    a model's file is not on disk
│   └── DatabaseError     the database cannot be reached or migrated
│       └── BlobGone      a stored file is missing or damaged
├── ModelError            a model failed or answered nonsense        (exit 4)
│   ├── ReplayMiss        a request is not in the record
│   └── NoReply           a model's server is away or fails
│       └── Refused       a model refuses, for safety
├── NotDelivered          a webhook or command did not take a hit
├── BudgetExceeded        time, tokens or rounds ran out             (exit 5)
├── Diverged              a replay went another way than its record  (exit 6)
└── MachineChanged        a record that another version made         (exit 6)
"""


class HomerError(Exception):
    """Base of every error that Homer raises on purpose."""

    exit_code = 1


class InputError(HomerError):
    """The user's input cannot be used as it is."""

    exit_code = 2


class MediaError(InputError):
    """A file is empty, damaged, or holds neither video nor audio."""


class NotFound(InputError):
    """No video, trajectory or person goes by that name."""


class Ambiguous(InputError):
    """Several things go by that name: a longer prefix is needed."""


class AccessDenied(InputError):
    """The user may not do this."""


class Busy(InputError):
    """Another process is at it: a moment later it may go."""


class SetupError(HomerError):
    """Something this machine needs is missing or misconfigured."""

    exit_code = 3


class WeightsMissing(SetupError):
    """A model's file is not on disk, or is not the file it should be."""


class DatabaseError(SetupError):
    """The database cannot be reached, started or migrated."""


class BlobGone(DatabaseError):
    """A stored file is missing from the library, or is not what it was."""


class ModelError(HomerError):
    """A model failed, timed out, or answered what cannot be read."""

    exit_code = 4


class ReplayMiss(ModelError):
    """A replay asked for a model call that is not in the record."""


class NoReply(ModelError):
    """A model's server gave no reply: to ask in other words is no use."""


class Refused(NoReply):
    """A model refuses to look at this, for safety: to ask again is no use."""


class NotDelivered(HomerError):
    """A hit of an alert was not delivered; the message repeats no address or content."""


class BudgetExceeded(HomerError):
    """Time, tokens or rounds ran out before the work was done."""

    exit_code = 5


class MachineChanged(HomerError):
    """A trajectory cannot be run again: the machine is another one since it was made."""

    exit_code = 6


class Diverged(HomerError):
    """A trajectory that was run again from its record went another way."""

    exit_code = 6
