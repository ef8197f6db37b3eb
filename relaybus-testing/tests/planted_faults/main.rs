//! Does the contract suite bite? Faults are planted in a copy of the in-memory store, one at a time, and a named case
//! must fail for each, and pass without it.
#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "a case is run on a thread of its own, where its panic is its answer"
)]

mod append;
mod fault;
mod settle;
mod store;
mod turn;

use fault::Fault;
use relaybus_testing::store_suite;
use store::Mutants;

/// One test for each planted fault: `name: Fault => the case that catches it`.
macro_rules! planted_faults {
    ($($name:ident: $fault:ident => $module:ident::$case:ident;)*) => {
        $(#[test]
        fn $name() {
            const CASE: &str = concat!(stringify!($module), "::", stringify!($case));
            store_suite::run(CASE, Mutants(Fault::None), store_suite::$module::$case);
            let caught = std::thread::spawn(|| {
                store_suite::run(CASE, Mutants(Fault::$fault), store_suite::$module::$case);
            })
            .join();
            assert!(caught.is_err(), "`{CASE}` passes with {:?} planted", Fault::$fault);
        })*

        /// Every fault of the list is planted somewhere.
        #[test]
        fn every_fault_has_a_test() {
            let planted = [$(Fault::$fault),*];
            for fault in Fault::ALL {
                assert!(planted.contains(fault), "{fault:?} is not planted");
            }
            assert!(planted.len() >= 25, "{} faults", planted.len());
        }
    };
}

planted_faults! {
    it_loses_the_last_event_of_a_batch: LosesTheLastEvent => append::a_large_batch_is_stored_completely;
    it_ignores_delays: IgnoresDelays => append::a_delayed_delivery_waits_for_its_time;
    it_sorts_batches: SortsBatches => append::a_batch_keeps_the_order_of_publication;
    it_stores_batches_in_pieces: SplitsBatches => dropped::a_dropped_append_is_whole_or_nothing;
    it_forgets_ids: ForgetsIds => inbox::a_completed_handler_gets_nothing_again;
    it_ignores_handlers_added_later: IgnoresAddedHandlers => inbox::a_handler_added_later_gets_the_event;
    it_revives_the_dead: RevivesTheDead => inbox::a_dead_delivery_is_not_revived;
    it_keeps_the_last_copy: KeepsTheLastCopy => inbox::the_first_copy_stays;

    it_reformats_payloads: ReformatsPayloads => fidelity::payloads_come_back_byte_for_byte;
    it_sorts_headers: SortsHeaders => fidelity::headers_come_back_byte_for_byte;
    it_folds_keys: FoldsKeys => fidelity::keys_are_any_text;
    it_cuts_keys: CutsKeys => fidelity::keys_are_any_text;
    it_trims_ids: TrimsIds => fidelity::ids_are_any_text;
    it_drops_the_cause: DropsTheCause => fidelity::envelopes_come_back_whole;
    it_rounds_times: RoundsTimes => time::times_are_kept_to_the_microsecond;

    it_stores_outside_the_transaction: StoresOutsideTheTransaction => transactions::a_rolled_back_append_leaves_nothing;
    it_shows_what_is_not_committed: StoresOutsideTheTransaction => transactions::an_uncommitted_append_is_invisible;
    it_commits_on_rollback: CommitsOnRollback => transactions::a_rolled_back_append_leaves_nothing;
    it_loses_commits: LosesCommits => transactions::a_committed_append_is_delivered;
    it_completes_outside_the_transaction: CompletesOutsideTheTransaction =>
        transactions::a_rolled_back_complete_in_changes_nothing;
    it_does_not_fence_transactions: DoesNotFenceTransactions => transactions::complete_in_is_fenced;
    it_says_that_every_lease_is_held: SaysHeld => transactions::inspect_tells_what_became_of_a_lease;
    it_ignores_isolation_levels: IgnoresIsolation => transactions::isolation_levels_are_kept_or_refused;

    it_claims_for_every_handler: ClaimsForEveryHandler => claim::only_handlers_asked_for_are_claimed;
    it_ignores_the_limit: IgnoresTheLimit => claim::at_most_the_limit_is_claimed;
    it_ignores_slots: IgnoresSlots => claim::slots_of_a_handler_bound_its_runs;
    it_never_says_more: NeverSaysMore => claim::more_is_said_while_more_is_due;
    it_hands_out_twice: HandsOutTwice => claim::a_claimed_delivery_is_not_handed_out_again;
    it_hands_out_what_others_hold: HandsOutWhatOthersHold =>
        claim::a_claimed_delivery_is_not_handed_to_another_worker;
    it_loses_claims: LosesClaims => claim::a_claimer_that_keeps_on_drains_the_store;
    it_claims_early: ClaimsEarly => time::due_means_due_to_the_microsecond;
    it_counts_running_deliveries: CountsRunningDeliveries => claim::running_deliveries_do_not_use_up_the_limit;
    it_spends_its_limit_on_blocked_keys: SpendsItsLimitOnBlockedKeys =>
        starvation::followers_of_a_blocked_head_hide_nothing;
    it_puts_the_wrong_lane_into_tokens: WrongLanes => claim::the_token_names_lane_and_claims;
    it_answers_in_another_order: SwapsAnswers => claim::completions_are_answered_in_their_order;

    it_has_no_order: HasNoOrder => order::one_delivery_of_a_key_at_a_time;
    it_has_no_order_under_load: HasNoOrder => races::twelve_claimers_keep_thirty_keys_in_order;
    it_has_no_runs: HasNoRuns => runs::a_run_has_the_next_deliveries_of_its_key;
    it_reverses_runs: ReversesRuns => runs::a_run_has_the_next_deliveries_of_its_key;
    it_ends_runs_early: EndsRunsEarly => runs::a_run_keeps_its_key_until_it_ends;
    it_ends_runs_early_under_load: EndsRunsEarly => races::twelve_claimers_keep_thirty_keys_in_order;
    it_forgets_the_rest_of_a_run: ForgetsTheRest => runs::a_failed_element_gives_back_the_rest;
    it_charges_followers: CountsClaimsAsAttempts => lease::closing_a_session_hands_back_uncharged;
    it_charges_the_rest_of_a_run: ChargesTheRest => runs::a_failed_element_gives_back_the_rest;

    it_never_takes_over: NeverTakesOver => lease::a_dead_workers_delivery_is_redelivered;
    it_takes_over_uncharged: TakesOverUncharged => lease::a_poison_delivery_is_charged_every_time;
    it_takes_over_the_living: TakesOverTheLiving => lease::a_renewing_session_is_never_taken_over;
    it_ignores_renewals: IgnoresRenewals => lease::a_renewing_session_is_never_taken_over;
    it_shortens_leases: ShortensLeases => time::a_renewal_never_shortens_a_lease;
    it_refuses_expired_sessions: RefusesExpiredSessions => lease::an_expired_session_that_nobody_took_goes_on;
    it_revives_lost_sessions: RevivesLostSessions => lease::a_worker_that_lost_its_session_changes_nothing;
    it_charges_at_the_end_of_a_session: ChargesAtClose => lease::closing_a_session_hands_back_uncharged;
    it_hands_nothing_back: HandsNothingBack => lease::leases_of_a_closed_session_are_fenced;
    it_forgets_attempts: ForgetsAttempts => lease::a_poison_delivery_is_charged_every_time;

    it_ignores_tokens: IgnoresTokens => settle::an_older_attempt_is_fenced;
    it_says_applied: SaysApplied => settle::completing_twice_answers_gone;
    it_forgets_completions: ForgetsCompletions => settle::a_completed_delivery_is_gone;
    it_retries_at_once: RetriesAtOnce => settle::a_rescheduled_delivery_comes_back_when_due;
    it_forgets_failures: ForgetsFailures => settle::a_rescheduled_delivery_comes_back_when_due;
    it_charges_releases: ChargesReleases => settle::a_released_delivery_goes_back_as_it_was;
    it_deletes_what_is_buried: DeletesTheBuried => settle::a_buried_delivery_is_dead;
    it_always_charges_burials: AlwaysChargesBurials => settle::burying_may_charge_nothing;

    it_requeues_anything: RequeuesAnything => admin::only_dead_deliveries_are_requeued;
    it_skips_between_pages: SkipsBetweenPages => admin::pages_show_each_delivery_once;
    it_lists_backwards: ListsBackwards => admin::lists_are_filtered;
    it_hides_unknown_handlers: HidesUnknownHandlers => admin::the_backlog_names_every_handler;
    it_counts_the_held_as_pending: CountsTheHeldAsPending => admin::statistics_count_by_status;
    it_purges_without_end: PurgesWithoutEnd => purge::a_purge_works_in_steps;
    it_purges_the_young: PurgesTheYoung => purge::recently_completed_events_stay;
    it_purges_the_dead_unasked: PurgesTheDeadUnasked => purge::nothing_goes_unasked;
    it_keeps_the_dead: KeepsTheDead => purge::dead_deliveries_go_when_asked_for;
    it_has_no_history: HasNoHistory => history::completed_deliveries_are_listed_with_a_history;
}
