//! The faults that can be planted.

/// Declares the faults and the list of them all.
macro_rules! faults {
    ($($fault:ident)*) => {
        /// What is wrong with a [`Mutant`](super::store::Mutant).
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum Fault {
            /// Nothing: the store as it should be.
            None,
            $($fault,)*
        }

        impl Fault {
            pub(crate) const ALL: &[Self] = &[$(Self::$fault),*];
        }
    };
}

faults! {
    LosesTheLastEvent IgnoresDelays SortsBatches SplitsBatches ForgetsIds IgnoresAddedHandlers RevivesTheDead
    KeepsTheLastCopy
    ReformatsPayloads SortsHeaders FoldsKeys CutsKeys TrimsIds DropsTheCause RoundsTimes
    StoresOutsideTheTransaction CommitsOnRollback LosesCommits CompletesOutsideTheTransaction DoesNotFenceTransactions
    SaysHeld IgnoresIsolation
    ClaimsForEveryHandler IgnoresTheLimit IgnoresSlots NeverSaysMore HandsOutTwice HandsOutWhatOthersHold LosesClaims
    ClaimsEarly CountsRunningDeliveries SpendsItsLimitOnBlockedKeys WrongLanes SwapsAnswers
    HasNoOrder HasNoRuns ReversesRuns EndsRunsEarly ForgetsTheRest CountsClaimsAsAttempts ChargesTheRest
    NeverTakesOver TakesOverUncharged TakesOverTheLiving IgnoresRenewals ShortensLeases RefusesExpiredSessions
    RevivesLostSessions ChargesAtClose HandsNothingBack ForgetsAttempts
    IgnoresTokens SaysApplied ForgetsCompletions RetriesAtOnce ForgetsFailures ChargesReleases DeletesTheBuried
    AlwaysChargesBurials
    RequeuesAnything SkipsBetweenPages ListsBackwards HidesUnknownHandlers CountsTheHeldAsPending PurgesWithoutEnd
    PurgesTheYoung PurgesTheDeadUnasked KeepsTheDead HasNoHistory
}
