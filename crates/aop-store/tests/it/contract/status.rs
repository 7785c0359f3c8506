//! The status table through the tools, and the gate that nothing passes while a human is waited for.

use crate::support::{World, on_every_backend};
use aop_kernel::lifecycle::{Action, permit};
use aop_kernel::role::Role;
use aop_kernel::status::Status;
use serde_json::json;

on_every_backend!(
    status_feature_create_starts_in_planning_and_ids_are_never_reused,
    status_transition_follows_the_table_and_never_touches_awaiting_input,
    status_every_action_is_refused_while_awaiting_input,
    status_blocked_remembers_its_phase_and_retry_returns_there,
    status_blocked_from_survives_a_question_asked_while_blocked,
    status_blocked_from_is_the_phase_in_which_a_question_of_a_blocked_time_was_asked_again,
    status_retry_only_of_what_is_blocked,
    status_cancel_ends_every_feature_that_has_not_ended,
);

async fn status_feature_create_starts_in_planning_and_ids_are_never_reused(w: &World) {
    let input = json!({"feature_id": "a", "title": "A"});
    let data = w.call(Role::Orchestrator, "feature.create", input.clone()).await.unwrap();
    assert_eq!((&data["feature_id"], &data["status"]), (&json!("a"), &json!("planning")));
    w.refuses("feature_already_exists", w.call(Role::Human, "feature.create", input.clone())).await;
    w.cancel("a").await.unwrap();
    w.refuses("feature_already_exists", w.call(Role::Human, "feature.create", input)).await;
}

async fn status_transition_follows_the_table_and_never_touches_awaiting_input(w: &World) {
    for from in Status::ALL {
        for to in Status::ALL {
            let id = format!("{from}-{to}");
            w.feature_in(&id, *from).await;
            let call = w.transition(&id, *to);
            match (*from, *to) {
                (Status::AwaitingInput, _) => drop(w.refuses("question_open_blocks_action", call).await),
                (from, to) if to != Status::AwaitingInput && from.may_become(to) => {
                    assert_eq!(call.await.unwrap()["status"], json!(to));
                }
                _ => drop(w.refuses("invalid_status_transition", call).await),
            }
        }
    }
}

async fn status_every_action_is_refused_while_awaiting_input(w: &World) {
    w.feature_in("a", Status::Building).await;
    let id = w.ask("a").await;
    let feature = w.show("a").await;
    for action in Action::ALL {
        let refusal = permit(&feature, *action).unwrap_err();
        assert_eq!(refusal.code.as_str(), "question_open_blocks_action", "{action:?}");
        assert_eq!(refusal.facts["question_id"], id);
    }
    w.refuses("question_open_blocks_action", w.retry("a")).await;
    w.answer("a", &id, json!("left")).await.unwrap();
    let feature = w.show("a").await;
    assert!(Action::ALL.iter().all(|action| permit(&feature, *action).is_ok()));
}

async fn status_blocked_remembers_its_phase_and_retry_returns_there(w: &World) {
    for from in [Status::Planning, Status::Building, Status::Qa, Status::ReadyToMerge] {
        let id = from.as_str();
        w.feature_in(id, from).await;
        w.transition(id, Status::Blocked).await.unwrap();
        assert_eq!(w.show(id).await.blocked_from, Some(from));
        assert_eq!(w.retry(id).await.unwrap()["status"], json!(from));
        assert_eq!(w.show(id).await.blocked_from, None);
    }
}

async fn status_blocked_from_survives_a_question_asked_while_blocked(w: &World) {
    w.feature_in("a", Status::Qa).await;
    w.transition("a", Status::Blocked).await.unwrap();
    let answered = w.ask("a").await;
    w.answer("a", &answered, json!("left")).await.unwrap();
    assert_eq!(w.show("a").await.blocked_from, Some(Status::Qa));
    w.ask("a").await;
    w.later(crate::support::QUARTER);
    assert_eq!(w.show("a").await.blocked_from, Some(Status::Qa), "also when that question expires");
    w.retry("a").await.unwrap();
    assert_eq!(w.status("a").await, Status::Qa);
}

async fn status_blocked_from_is_the_phase_in_which_a_question_of_a_blocked_time_was_asked_again(w: &World) {
    for phase in [Status::Planning, Status::Building, Status::Qa, Status::ReadyToMerge] {
        for expires in [false, true] {
            let id = format!("{phase}-{expires}");
            w.feature_in(&id, phase).await;
            w.transition(&id, Status::Blocked).await.unwrap();
            let old = w.ask(&id).await;
            w.withdraw(&id, &old).await.unwrap();
            w.retry(&id).await.unwrap();
            let again = w.reopen(&id, &old).await.unwrap();
            assert_eq!(w.show(&id).await.waiting.unwrap().resume_status.as_str(), "blocked", "the original");
            if expires {
                w.later(crate::support::QUARTER);
            } else {
                w.answer(&id, again["question_id"].as_str().unwrap(), json!("left")).await.unwrap();
            }
            let feature = w.show(&id).await;
            assert_eq!((feature.status, feature.blocked_from), (Status::Blocked, Some(phase)), "{id}");
            assert_eq!(w.retry(&id).await.unwrap()["status"], json!(phase), "{id}");
        }
    }
}

async fn status_retry_only_of_what_is_blocked(w: &World) {
    for status in [Status::Planning, Status::Building, Status::Merged, Status::Failed] {
        w.feature_in(status.as_str(), status).await;
        w.refuses("invalid_status_transition", w.retry(status.as_str())).await;
    }
    w.refuses("feature_not_found", w.retry("nowhere")).await;
}

async fn status_cancel_ends_every_feature_that_has_not_ended(w: &World) {
    for status in Status::ALL {
        let id = status.as_str();
        w.feature_in(id, *status).await;
        if status.is_terminal() {
            w.refuses("invalid_status_transition", w.cancel(id)).await;
            continue;
        }
        assert_eq!(w.cancel(id).await.unwrap()["status"], "failed");
        assert_eq!(w.show(id).await.status_reason.as_deref(), Some("cancelled"));
    }
}
