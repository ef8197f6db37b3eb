//! The rules that can be left out, to see that the search notices.

/// A rule that is left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Mutant {
    /// `done` and `complete_in` do not compare `claims`.
    CompletionWithoutClaims,
    /// `free_held` does not count `claims` up.
    TakeoverWithoutBump,
    /// `free_held` charges nobody.
    TakeoverWithoutCharge,
    /// `free_held` charges followers too.
    TakeoverChargesAll,
    /// A takeover goes on although a delivery is locked by its handler's transaction.
    TakeoverPastLocks,
    /// The takeover reads what it frees before it locks the session.
    TakeoverReadsBeforeLock,
    /// The takeover frees and fences only handlers that the taker knows, and deletes the row.
    TakeoverPartial,
    /// The takeover frees everything, and fences only deliveries of handlers that the taker knows.
    TakeoverFencesKnown,
    /// The takeover leaves the bytes and deletes the row.
    TakeoverLeavesBytes,
    /// The takeover frees everything and keeps the row.
    TakeoverKeepsRow,
    /// The takeover fences what the row lists in lanes that are another's.
    TakeoverBeyondLanes,
    /// Only who has a session takes over.
    TakeoverNeedsSession,
    /// Sessions without lanes are not taken over.
    TakeoverNeedsLanes,
    /// Statements have no number.
    NoTurnNumber,
    /// `take` and `hand_back` do not lock the session's own row.
    LanesWithoutOwnRow,
    /// Statements find their session by its number.
    SessionByNumber,
    /// A number is free when no lane has it.
    NumberByLanes,
    /// A process that lost its session opens the next under the same owner.
    SameOwner,
    /// A turn hands out although the session's row is gone.
    TurnWithoutRow,
    /// A lane that is to be handed back is claimed from.
    MaskKept,
    /// Lanes are handed back while something of them is in hand.
    HandBackBusy,
    /// Lanes are handed back while the row may list what is not in hand.
    HandBackDirty,
    /// `hand_back` zeroes the listed lanes, whoever has them.
    HandBackAnyByte,
    /// `close_session` deletes the row and keeps the lanes.
    LeaveKeepsLanes,
    /// A process that leaves closes its session while its handlers run.
    LeaveBusy,
    /// The lanes are never read again: those that a session knows are those of the answers it heard.
    NoReread,
    /// The lanes are read again only after a lost answer.
    RereadOnce,
    /// They are read again, without a numbered statement before.
    UnnumberedReread,
    /// A commit whose answer was lost counts as done, without a look.
    DoubtIsSuccess,
    /// Deliveries start after the local deadline.
    NoLocalDeadline,
    /// Runs of a lost session do not block their key.
    OrphansForgotten,
    /// A delivery that came back begins a run with followers.
    RunsOfReturned,
    /// Followers of a failed delivery stay in the run.
    FollowersKept,
    /// `settle` does not rewrite `in_flight`.
    SettleKeepsInFlight,
    /// A turn is sent while a settlement is unanswered.
    TurnBeforeSettled,
    /// An answer to a turn that was lost is not repaired by the next: `in_flight` is written only when something is claimed.
    DirtyForgotten,
    /// Keys in hand are claimed.
    BusyKeys,
    /// The follower starts before the completion is durable.
    StrictGoesOn,
    /// Lanes are shared among all sessions, whatever they can run.
    ShareAmongAll,
    /// The share is rounded down.
    ShareRoundedDown,
    /// Lanes of handlers that the worker cannot run are taken.
    TakeUnknown,
    /// Free lanes that nobody takes are left alone; alone this only costs time.
    FreeLeftAlone,
}
