//! Each mutant, and a configuration that catches it.

use crate::config::Config;
use crate::configurations::{A, AB, B};
use crate::mutant::Mutant;
use crate::mutant::Mutant::{
    BusyKeys, CompletionWithoutClaims, DirtyForgotten, DoubtIsSuccess, FollowersKept, FreeLeftAlone, HandBackAnyByte,
    HandBackBusy, HandBackDirty, LanesWithoutOwnRow, LeaveBusy, LeaveKeepsLanes, MaskKept, NoLocalDeadline, NoReread,
    NoTurnNumber, NumberByLanes, OrphansForgotten, RereadOnce, RunsOfReturned, SameOwner, SessionByNumber,
    SettleKeepsInFlight, ShareAmongAll, ShareRoundedDown, StrictGoesOn, TakeUnknown, TakeoverBeyondLanes,
    TakeoverChargesAll, TakeoverFencesKnown, TakeoverKeepsRow, TakeoverLeavesBytes, TakeoverNeedsLanes,
    TakeoverNeedsSession, TakeoverPartial, TakeoverPastLocks, TakeoverReadsBeforeLock, TakeoverWithoutBump,
    TakeoverWithoutCharge, TurnBeforeSettled, TurnWithoutRow, UnnumberedReread,
};

/// What is left out, and where that shows.
#[derive(Clone, Debug)]
pub struct Catch {
    /// The rules that are left out: mostly one; two where each makes up for the other.
    pub mutants: Vec<Mutant>,
    /// The configuration, with the rules left out.
    pub config: Config,
}

fn catch(mutants: &[Mutant], config: Config) -> Catch {
    let config = mutants.iter().fold(config, |config, &mutant| config.without(mutant));
    Catch { mutants: mutants.to_vec(), config }
}

/// The workers by their handlers, what there is to do, and what goes wrong.
fn named(sets: &[u8], work: &str, letters: &str) -> String {
    let set = |set: &u8| match *set {
        A => "{a}",
        B => "{b}",
        AB => "{ab}",
        _ => "{-}",
    };
    let sets: String = sets.iter().map(set).collect();
    format!("{sets}, {work}, {}", if letters.is_empty() { "nothing goes wrong" } else { letters })
}

fn unkeyed(sets: &[u8], letters: &str) -> Config {
    Config::new(&named(sets, "one delivery", letters), sets).unkeyed(0, 0).with(letters)
}

fn two_handlers(sets: &[u8], letters: &str) -> Config {
    Config::new(&named(sets, "two handlers", letters), sets).unkeyed(0, 0).unkeyed(1, 0).with(letters)
}

fn run_of_two(sets: &[u8], letters: &str) -> Config {
    Config::new(&named(sets, "run of 2", letters), sets).keyed(0, 0).keyed(0, 0).runs(2).with(letters)
}

/// All of them.
#[must_use]
pub fn catches() -> Vec<Catch> {
    vec![
        catch(&[CompletionWithoutClaims], unkeyed(&[A, A], "p")),
        catch(&[TakeoverWithoutBump], unkeyed(&[A, A], "p")),
        catch(&[TakeoverWithoutCharge], unkeyed(&[A, A], "c")),
        catch(&[TakeoverChargesAll], run_of_two(&[A, A], "c")),
        catch(&[TakeoverPastLocks], unkeyed(&[A, A], "c").transactional(A)),
        catch(&[TakeoverReadsBeforeLock], unkeyed(&[A, A], "p")),
        catch(&[TakeoverPartial], two_handlers(&[AB, B], "c")),
        catch(&[TakeoverFencesKnown], two_handlers(&[AB, B], "c")),
        catch(&[TakeoverLeavesBytes], unkeyed(&[A, A], "c")),
        catch(&[TakeoverKeepsRow], unkeyed(&[A], "cr")),
        catch(&[TakeoverBeyondLanes, HandBackDirty], unkeyed(&[A, A], "lhp")),
        catch(&[TakeoverBeyondLanes, DirtyForgotten], unkeyed(&[A, A], "lhp")),
        catch(&[TakeoverNeedsSession], unkeyed(&[A], "cr")),
        catch(&[TakeoverNeedsLanes], two_handlers(&[A, 0], "c").restart(1, B)),
        catch(&[NoTurnNumber], unkeyed(&[A, A], "llh")),
        catch(&[LanesWithoutOwnRow], unkeyed(&[A, A], "lh")),
        catch(&[SessionByNumber], unkeyed(&[A, A], "clr")),
        catch(&[NumberByLanes], two_handlers(&[A, B], "").absent(0).absent(1)),
        catch(&[SameOwner], unkeyed(&[A, A], "plr")),
        catch(&[TurnWithoutRow], unkeyed(&[A, A], "p")),
        catch(&[MaskKept], unkeyed(&[A, A], "h")),
        catch(&[HandBackBusy], unkeyed(&[A, A], "h")),
        catch(&[HandBackAnyByte, UnnumberedReread], unkeyed(&[A, A], "lh")),
        catch(&[LeaveBusy], unkeyed(&[A, A], "x")),
        catch(&[LeaveKeepsLanes], unkeyed(&[A, A], "x")),
        catch(&[NoReread], unkeyed(&[A], "l").absent(0)),
        catch(&[UnnumberedReread, RereadOnce], unkeyed(&[A], "l").absent(0)),
        catch(&[DoubtIsSuccess], unkeyed(&[A], "l").transactional(A)),
        catch(&[NoLocalDeadline], unkeyed(&[A, A], "p")),
        catch(&[OrphansForgotten], unkeyed(&[A, A], "p")),
        catch(&[RunsOfReturned], run_of_two(&[A], "ccr").replay(A)),
        catch(&[FollowersKept], run_of_two(&[A], "f")),
        catch(&[SettleKeepsInFlight], run_of_two(&[A, A], "cf")),
        catch(&[TurnBeforeSettled], run_of_two(&[A, A], "clf").unkeyed(0, 0)),
        catch(&[BusyKeys], run_of_two(&[A], "").runs(1)),
        catch(&[StrictGoesOn], run_of_two(&[A, A], "c")),
        catch(&[ShareAmongAll, FreeLeftAlone], two_handlers(&[A, B], "").absent(0).absent(1).lanes(2).unkeyed(0, 1)),
        catch(&[ShareRoundedDown, FreeLeftAlone], two_handlers(&[A, A, B], "").absent(0).absent(1).unkeyed(0, 0)),
        catch(&[TakeUnknown], two_handlers(&[AB, B], "c")),
    ]
}

/// Rules that can be left out alone: what they stop, another rule stops too. Each is in a pair of [`catches`].
#[must_use]
pub fn made_up_for() -> Vec<Catch> {
    vec![
        catch(&[HandBackAnyByte], unkeyed(&[A, A], "llh")),
        catch(&[UnnumberedReread], unkeyed(&[A, A], "llh")),
        catch(&[RereadOnce], unkeyed(&[A], "ll").absent(0)),
        catch(&[DirtyForgotten], run_of_two(&[A, A], "clf")),
        catch(&[TakeoverBeyondLanes], unkeyed(&[A, A], "lhp")),
        catch(&[HandBackDirty], unkeyed(&[A, A], "lhp")),
        catch(&[ShareAmongAll], two_handlers(&[A, B], "").absent(0).absent(1).lanes(2).unkeyed(0, 1)),
        catch(&[ShareRoundedDown], two_handlers(&[A, A, B], "").absent(0).absent(1).unkeyed(0, 0)),
        catch(&[FreeLeftAlone], two_handlers(&[A, B], "c").absent(0).lanes(2).unkeyed(0, 1)),
    ]
}
