"""Everything that we raise on purpose.

* DeskhandError
  x ConfigError
    + JobInvalid
    + TimeUnclear
  x Refused
    + NoSuchJob
  x StoreError
    + StaleSession
    + StoreUnavailable
      - StoreBusy
      - StoreFull
      - StoreReadOnly
    + StoreCorrupt
    + StoreNewer
    + BlobMissing
  x ModelError
    + ModelOverloaded
    + ModelUnavailable
    + ModelTimeout
    + ModelKeyRefused
    + ModelUnknown
    + ModelRequestRefused
    + ContextOverflow
    + MalformedReply
    + BudgetSpent
    + AnswerUnfit
  x PictureRefused
  x ToolError
    + OutsideWorkspace
    + ProtectedPath
  x SandboxError
    + SandboxUnavailable
  x NetError
    + AddressRefused
    + TooLarge
    + PushFailed
      - PushGone
      - PushLater
  x SpeechError
  x ChannelError
    + SendRefused
    + LoginRefused

The docstring of a class is its message where none is given.
"""

from __future__ import annotations

from .labels import LOCAL, Label


class DeskhandError(Exception):
    """Something went wrong."""

    def __init__(self, message: str = "") -> None:
        super().__init__(message or (type(self).__doc__ or "").strip().splitlines()[0])


class ConfigError(DeskhandError):
    """The configuration cannot be used."""


class JobInvalid(ConfigError):
    """This job cannot run as it is written."""


class TimeUnclear(ConfigError):
    """It is not clear when that is: write a time such as `tomorrow at 9:00` or `every Monday at
    8:00`."""


class Refused(DeskhandError):
    """This is not permitted here."""


class NoSuchJob(Refused):
    """There is no such job here."""


class NoSuchFact(Refused):
    """There is no such memory here."""


class StoreError(DeskhandError):
    """The store could not do what was asked."""


class StaleSession(StoreError):
    """Someone else appended to this session first; read the log again and decide anew."""


class StoreUnavailable(StoreError):
    """The store cannot write now; nothing that was acknowledged is lost, and it may recover by
    itself."""


class Ending(StoreUnavailable):
    """The service is ending, and takes in nothing that would begin."""


class NotLeading(StoreUnavailable):
    """Another process drives these sessions now, so this one writes nothing any more."""


class StoreBusy(StoreUnavailable):
    """Another process holds the database; the write is tried again."""


class StoreFull(StoreUnavailable):
    """The disk is full: free some space, and work goes on by itself."""


class StoreReadOnly(StoreUnavailable):
    """The database cannot be written: check the permissions of its folder and how the disk is
    mounted."""


class StoreCorrupt(StoreError):
    """The database is damaged: restore a backup, or move the file away to start afresh."""


class StoreNewer(StoreError):
    """The database was written by a newer Deskhand: update Deskhand, or use another
    DESKHAND_HOME."""


class BlobMissing(StoreError):
    """The file behind this message is no longer there."""


class ModelError(DeskhandError):
    """A model call failed.

    `retry_after_s` is what the provider asked us to wait, where it did.
    """

    def __init__(self, message: str = "", retry_after_s: float | None = None) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


class ModelOverloaded(ModelError):
    """The provider asked us to wait."""


class ModelUnavailable(ModelError):
    """The provider could not be reached, or failed on its side."""


class ModelTimeout(ModelUnavailable):
    """The model did not answer in time."""


class ModelKeyRefused(ModelError):
    """The provider refused the key: check it, or choose another model."""


class ModelUnknown(ModelError):
    """The provider does not have this model: check its name with `deskhand model list`."""


class ModelRequestRefused(ModelError):
    """The provider refused the request itself; sending it again would not help."""


class ContextOverflow(ModelError):
    """The conversation is longer than the model can read."""


class MalformedReply(ModelError):
    """The provider's answer could not be understood."""


class BudgetSpent(ModelError):
    """A budget is spent. The message says which, when it resets and how to lift it: no
    other model is tried, and trying again would not help."""


class AnswerUnfit(ModelError):
    """The answer does not follow the JSON schema that was asked for, not even at the second try."""


class ModelTooSmall(DeskhandError):
    """No model is there that can be trusted with this. It waits until one is."""


class PictureRefused(DeskhandError):
    """This picture cannot be shown to a model. The message completes a sentence about it."""


class ToolError(DeskhandError):
    """The tool could not do it. The model reads this message and may try again.

    It has this `label`, beside that of the files which the call names and of what the conversation
    has read. Without one it says nothing but what the call has said: an error that quotes what was
    stored names whose word that is.
    """

    def __init__(self, message: str = "", label: Label = LOCAL) -> None:
        super().__init__(message)
        self.label = label


class OutsideWorkspace(ToolError):
    """This path is not in the workspace, nor in a folder that was allowed."""


class ProtectedPath(ToolError):
    """Programs obey what this file says, so it is not written without a person's word."""


class SandboxError(DeskhandError):
    """The command could not be run."""


class SandboxUnavailable(SandboxError):
    """No sandbox works on this machine, so nothing is run: see `deskhand doctor`."""


class NetError(DeskhandError):
    """The address could not be fetched."""


class AddressRefused(NetError):
    """Nothing is fetched from this address."""


class PushFailed(NetError):
    """The push service did not take the message."""


class PushGone(PushFailed):
    """This browser can be told nothing any more: its push service has forgotten it."""


class PushLater(PushFailed):
    """It is to be tried again, in `wait_s` seconds where the push service says so."""

    def __init__(self, text: str, wait_s: float = 0.0) -> None:
        super().__init__(text)
        self.wait_s = wait_s


class TooLarge(NetError):
    """The body is larger than was allowed, or unpacks to much more than was sent. The message
    completes a sentence."""


class SpeechError(DeskhandError):
    """A recording could not be heard, or words could not be spoken."""


class ChannelError(DeskhandError):
    """The platform could not be reached, or asked us to wait.

    `retry_after_s` is what it asked for, where it did. `unsent` means that the message surely did
    not arrive: what may have arrived is marked when it is sent again.
    """

    def __init__(
        self, message: str = "", retry_after_s: float | None = None, *, unsent: bool = False
    ) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s
        self.unsent = unsent


class SendRefused(ChannelError):
    """The platform will not take this message, however often it is sent."""


class LoginRefused(ChannelError):
    """The platform does not let us in: check the key of this channel."""


def first_of_group(error: BaseException) -> BaseException:
    """The first exception that task groups have wrapped; any other one itself."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error
