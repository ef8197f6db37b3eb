//! The one table of all contract cases, and the macros that read it.

/// Calls `$callback!` with every contract case, as `{ $argument.. } module { case case .. } ..`.
///
/// The table is written once, here. [`store_contract!`](crate::store_contract) makes tests of it; a tool may read it too.
#[macro_export]
macro_rules! store_cases {
    ($callback:path, { $($argument:tt)* }) => {
        $callback! {
            { $($argument)* }
            append {
                an_event_is_delivered_to_its_handler
                every_handler_gets_its_own_delivery
                outcomes_count_the_deliveries_created
                an_event_without_handlers_is_stored
                an_empty_batch_is_nothing
                a_delayed_delivery_waits_for_its_time
                a_batch_keeps_the_order_of_publication
                a_large_batch_is_stored_completely
                fresh_ids_are_stored_like_others
            }
            transactions {
                a_committed_append_is_delivered
                a_rolled_back_append_leaves_nothing
                a_dropped_transaction_leaves_nothing
                an_uncommitted_append_is_invisible
                a_late_commit_is_found
                the_order_of_a_key_is_that_of_commits
                a_transaction_knows_its_own_ids
                complete_in_takes_effect_with_the_commit
                a_rolled_back_complete_in_changes_nothing
                complete_in_is_fenced
                complete_in_applies_once
                a_run_is_completed_by_transactions
                a_takeover_after_complete_in_charges_the_next_element
                a_takeover_and_a_commit_exclude_each_other
                inspect_tells_what_became_of_a_lease
                isolation_levels_are_kept_or_refused
                a_transaction_lends_what_it_has
            }
            inbox {
                an_id_is_stored_once
                a_completed_handler_gets_nothing_again
                a_handler_added_later_gets_the_event
                handlers_may_come_after_an_event
                a_running_delivery_is_not_doubled
                a_dead_delivery_is_not_revived
                duplicates_within_a_batch_are_known
                the_first_copy_stays
                a_rolled_back_id_is_free
                racing_appends_store_an_id_once
            }
            claim {
                nothing_is_claimed_from_an_empty_store
                at_most_the_limit_is_claimed
                a_limit_of_zero_claims_nothing
                slots_of_a_handler_bound_its_runs
                only_handlers_asked_for_are_claimed
                a_claimed_delivery_is_not_handed_out_again
                a_claimed_delivery_is_not_handed_to_another_worker
                more_is_said_while_more_is_due
                a_first_claim_has_no_attempts
                the_token_names_lane_and_claims
                running_deliveries_do_not_use_up_the_limit
                one_turn_completes_and_claims
                completions_are_answered_in_their_order
                a_claimer_that_keeps_on_drains_the_store
                workers_with_different_handlers_get_it_all
                a_late_worker_with_other_handlers_gets_what_waits
            }
            starvation {
                followers_of_a_blocked_head_hide_nothing
                followers_of_a_running_head_hide_nothing
                a_handler_without_slots_hides_nothing
                a_busy_handler_leaves_room_for_others
                unknown_handlers_hide_nothing
                delayed_deliveries_hide_nothing
                a_retry_is_not_forgotten_under_load
                a_delivery_that_turns_up_late_is_found
            }
            settle {
                a_rescheduled_delivery_comes_back_when_due
                a_reschedule_into_the_past_is_due_at_once
                a_buried_delivery_is_dead
                burying_may_charge_nothing
                a_released_delivery_goes_back_as_it_was
                a_release_keeps_earlier_attempts
                a_completed_delivery_is_gone
                completing_twice_answers_gone
                a_repeated_turn_answers_gone
                settling_twice_changes_nothing
                settlements_are_answered_in_their_order
                an_older_attempt_is_fenced
                an_attempt_ends_once
            }
            lease {
                a_dead_workers_delivery_is_redelivered
                a_renewing_session_is_never_taken_over
                a_worker_that_lost_its_session_changes_nothing
                a_lost_session_is_replaced_by_a_new_one
                an_expired_session_that_nobody_took_goes_on
                a_poison_delivery_is_charged_every_time
                a_takeover_charges_only_what_was_held
                a_takeover_frees_deliveries_of_unknown_handlers
                racing_heirs_charge_once
                closing_a_session_hands_back_uncharged
                leases_of_a_closed_session_are_fenced
                an_idle_session_closes
                a_dead_session_without_work_is_forgotten
                a_turn_without_a_sweep_claims
            }
            order {
                one_delivery_of_a_key_at_a_time
                the_order_is_that_of_storing
                a_retrying_head_blocks_its_key
                a_delayed_head_blocks_its_key
                a_dead_head_releases_its_key
                a_released_head_keeps_its_place
                a_takeover_keeps_the_order
                a_requeued_head_goes_before_waiting_followers
                a_requeued_head_waits_for_a_running_follower
                a_failed_follower_waits_for_a_requeued_head
                handlers_of_a_key_are_independent
                keys_are_independent
                a_handler_added_later_gets_the_earlier_event_first
                a_delivery_added_later_waits_for_a_running_one
                the_order_holds_across_instances
                requeued_deliveries_run_in_their_order
            }
            runs {
                a_run_has_the_next_deliveries_of_its_key
                a_run_ends_where_nothing_is_due
                the_limit_counts_runs
                runs_are_of_one_handler
                a_run_keeps_its_key_until_it_ends
                a_whole_run_may_complete_in_one_turn
                a_repeated_completion_keeps_the_run
                a_failed_element_gives_back_the_rest
                tokens_of_the_rest_end
                a_buried_element_lets_the_rest_go_on
                a_released_run_goes_back_uncharged
                a_late_settlement_of_a_run_changes_nothing
                a_takeover_charges_only_the_head_of_a_run
                a_redelivered_head_runs_alone
                a_run_may_end_early
                events_stored_during_a_run_come_after_it
                a_requeue_waits_for_a_run
            }
            history {
                completed_deliveries_are_listed_with_a_history
                a_record_keeps_the_attempts
                a_repeated_completion_leaves_one_record
                a_transaction_writes_its_record
                the_history_is_filtered
            }
            purge {
                completed_events_go
                recently_completed_events_stay
                retention_counts_from_the_completion
                retention_counts_from_the_last_completion
                unfinished_events_stay
                dead_deliveries_go_when_asked_for
                events_of_purged_dead_deliveries_go
                events_without_deliveries_go
                nothing_goes_unasked
                a_purge_works_in_steps
                a_purge_leaves_waiting_keys_alone
                a_purge_loses_no_added_handler
            }
            admin {
                statistics_count_by_status
                statistics_tell_how_long_work_waits
                the_backlog_names_every_handler
                lists_are_filtered
                pages_show_each_delivery_once
                pages_survive_changes
                a_running_delivery_shows_its_token
                only_dead_deliveries_are_requeued
                a_requeued_delivery_starts_over
                requeueing_twice_changes_nothing
                setup_is_idempotent
                closing_twice_is_fine
                a_store_describes_itself
                several_instances_share_their_data
                a_durable_store_survives_its_instance
                a_watch_reports_commits
            }
            time {
                a_clock_that_goes_back_loses_nothing
                a_clock_that_goes_back_keeps_leases
                a_renewal_never_shortens_a_lease
                a_clock_that_jumps_ahead_ends_nothing
                a_retry_follows_a_clock_that_went_back
                a_clock_that_is_behind_keeps_the_order
                a_fence_does_not_depend_on_clocks
                times_are_kept_to_the_microsecond
                due_means_due_to_the_microsecond
            }
            fidelity {
                payloads_come_back_byte_for_byte
                a_large_payload_comes_back
                headers_come_back_byte_for_byte
                ids_are_any_text
                keys_are_any_text
                handler_ids_are_any_text
                envelopes_come_back_whole
                nul_is_refused_before_the_store
                a_redelivery_is_the_same_event
            }
            races {
                twelve_claimers_keep_thirty_keys_in_order
                publishers_and_claimers_race
                a_follower_that_meets_a_completion_is_found
                restless_workers_lose_nothing
                workers_that_start_together_all_work
            }
            dropped {
                a_dropped_append_is_whole_or_nothing
                a_dropped_transaction_holds_up_nobody
                a_dropped_commit_is_whole_or_nothing
                a_dropped_complete_in_changes_nothing
                a_dropped_claim_loses_nothing
                a_session_goes_on_after_a_dropped_turn
                a_dropped_completion_may_be_repeated
                a_dropped_settlement_may_be_repeated
                a_dropped_session_stops_nobody
            }
        }
    };
}

/// Makes one test per contract case, in a module named by the caller:
///
/// ```text
/// relaybus_testing::store_contract! {
///     mod sqlite_plain;
///     factory = SqliteFactory::default();
/// }
/// ```
///
/// The factory expression is evaluated for every case. The tests are named `<module>::<subject>::<case>`.
#[macro_export]
macro_rules! store_contract {
    (mod $name:ident; factory = $factory:expr $(;)?) => {
        mod $name {
            #[allow(unused_imports, reason = "the factory expression may need nothing of its surroundings")]
            use super::*;

            fn factory() -> impl $crate::store_suite::StoreFactory {
                $factory
            }

            $crate::store_cases!($crate::__store_tests, {});
        }
    };
}

/// Not public API. Used by [`store_contract!`](crate::store_contract).
#[doc(hidden)]
#[macro_export]
macro_rules! __store_tests {
    ({} $($module:ident { $($case:ident)* })*) => {
        $(mod $module {
            $(#[test]
            fn $case() {
                $crate::store_suite::run(
                    concat!(stringify!($module), "::", stringify!($case)),
                    super::factory(),
                    $crate::store_suite::$module::$case,
                );
            })*
        })*
    };
}
