//! Races between processes at READ COMMITTED, as shipped: whoever loses learns who won, and nothing is half done.

use super::{live, world};
use crate::support::{World, feature_id, new_project, question, question_id, wait};
use aop_kernel::event::Event;
use aop_kernel::question::QuestionState;
use aop_kernel::role::{Caller, Role};
use aop_kernel::status::Status;
use aop_store::{ClaimState, EventPage, PostgresOptions};
use serde_json::{Value, json};
use std::sync::Barrier;

/// Three stores of one project, each with a writer of its own.
fn processes(project: &PostgresOptions) -> Vec<World> {
    (0..3).map(|_| live(project)).collect()
}

/// Lets so many callers, spread over the processes, begin at the same moment.
fn race<T: Send>(worlds: &[World], callers: usize, call: impl Fn(usize, &World) -> T + Sync) -> Vec<T> {
    let start = Barrier::new(callers);
    std::thread::scope(|scope| {
        let racing: Vec<_> = (0..callers)
            .map(|number| {
                let (start, call, w) = (&start, &call, &worlds[number % worlds.len()]);
                scope.spawn(move || {
                    start.wait();
                    call(number, w)
                })
            })
            .collect();
        racing.into_iter().map(|caller| caller.join().unwrap()).collect()
    })
}

#[test]
fn answers_racing_answers_have_one_winner_whom_all_others_are_told() {
    let project = new_project();
    let worlds = processes(&project);
    wait(worlds[0].feature("a"));
    for round in 0..5 {
        let id = wait(worlds[round % 3].ask("a"));
        let results = race(&worlds, 24, |number, w| {
            let name = format!("person{number}-{round}");
            // Each world counts its own operations; people of different machines name them apart.
            let input = json!({"feature_id": "a", "question_id": id, "answer": name, "answered_by": name,
                "operation_id": name});
            wait(w.call(Role::Human, "feature.question_answer", input))
        });
        let record = wait(worlds[0].record(&id));
        let (won, lost): (Vec<_>, Vec<_>) = results.into_iter().partition(Result::is_ok);
        assert_eq!((won.len(), lost.len()), (1, 23));
        for refusal in lost.into_iter().map(Result::unwrap_err) {
            assert_eq!(refusal.code.as_str(), "question_already_answered");
            assert_eq!(refusal.facts["answered_by"], record["answered_by"]);
            assert_eq!(refusal.facts["answer"], record["answer"]);
        }
    }
    wait(worlds[0].check());
}

#[test]
fn sixty_four_callers_on_one_operation_id_have_one_effect_and_equal_envelopes() {
    let project = new_project();
    let worlds = processes(&project);
    wait(worlds[0].feature("a"));
    let input = question("a", json!({"operation_id": "once"}));
    let envelopes = race(&worlds, 64, |_, w| {
        wait(w.raw(&Caller::new(Role::Builder), "feature.question_create", &input))
            .unwrap()
            .as_str()
            .to_owned()
    });
    assert!(envelopes.iter().all(|envelope| *envelope == envelopes[0]));
    let page = EventPage { feature: Some(feature_id("a")), ..Default::default() };
    assert_eq!(wait(worlds[0].store.events(page)).unwrap().len(), 3, "created, asked, stopped");
    wait(worlds[0].check());
}

/// One person answers at the very moment at which another process lets the time run out.
#[test]
fn answers_racing_expiry_end_one_way_and_everybody_agrees_which() {
    let project = new_project();
    let (one, two) = (world(&project), world(&project));
    let mut ends = [0, 0];
    for round in 0..20 {
        let name = format!("f{round}");
        let id = wait(async {
            one.feature_in(&name, Status::Qa).await;
            let data = one.ask_with(&name, json!({"timeout_ms": 1_000})).await.unwrap();
            data["question_id"].as_str().unwrap().to_owned()
        });
        // For the second process the time is up, for the first it is not: whoever commits first decides.
        two.later(1_000_000);
        let input = json!({"feature_id": name, "question_id": id, "answer": "x", "answered_by": "ann",
            "operation_id": format!("answer-{round}")});
        let start = Barrier::new(2);
        let answered = std::thread::scope(|scope| {
            let expiring = scope.spawn(|| {
                start.wait();
                wait(two.store.expire()).unwrap()
            });
            start.wait();
            let answered = wait(one.call(Role::Human, "feature.question_answer", input));
            expiring.join().unwrap();
            answered
        });
        one.later(1_000_000);
        let state = wait(one.store.question(question_id(&id))).unwrap().unwrap().state;
        match (&answered, &state) {
            (Ok(_), QuestionState::Answered { .. }) => ends[0] += 1,
            (Err(refusal), QuestionState::Expired { .. }) if refusal.code.as_str() == "question_closed" => {
                ends[1] += 1
            }
            other => panic!("{other:?}"),
        }
        let page = EventPage { feature: Some(feature_id(&name)), ..EventPage::default() };
        let log = wait(two.store.events(page)).unwrap();
        let closed = log.iter().filter(|recorded| {
            matches!(recorded.stamped.event, Event::QuestionAnswered { .. } | Event::QuestionExpired { .. })
        });
        assert_eq!(closed.count(), 1, "closed once");
    }
    assert_eq!(ends[0] + ends[1], 20);
    wait(one.check());
}

#[test]
fn reopen_racing_withdraw_leaves_one_history_that_replays() {
    let project = new_project();
    let worlds = processes(&project);
    wait(worlds[0].feature("a"));
    let mut id = wait(worlds[0].ask("a"));
    wait(worlds[0].withdraw("a", &id)).unwrap();
    for round in 0..8 {
        // Six people ask the withdrawn question again while six others take back whatever is open.
        let results = race(&worlds, 12, |number, w| {
            let target = if number % 2 == 0 {
                id.clone()
            } else {
                wait(w.list("a", "open")).first().cloned().unwrap_or(id.clone())
            };
            let tool = if number % 2 == 0 { "feature.question_reopen" } else { "feature.question_withdraw" };
            let input = json!({"feature_id": "a", "question_id": target, "operation_id": format!("{round}-{number}")});
            wait(w.call(Role::Human, tool, input))
        });
        let codes =
            results.iter().filter_map(|result| result.as_ref().err()).map(|refusal| refusal.code.as_str());
        for code in codes {
            assert!(["question_conflict_open", "question_closed"].contains(&code), "{code}");
        }
        let open = wait(worlds[1].list("a", "open"));
        assert!(open.len() <= 1, "{open:?}");
        let status = wait(worlds[2].status("a"));
        assert_eq!(status == Status::AwaitingInput, open.len() == 1);
        if let Some(last) = open.first() {
            wait(worlds[0].call(
                Role::Human,
                "feature.question_withdraw",
                json!({"feature_id": "a", "question_id": last, "operation_id": format!("end-{round}")}),
            ))
            .unwrap();
            id.clone_from(last);
        }
    }
    wait(worlds[0].check());
}

#[test]
fn one_of_many_processes_gets_a_claim_and_a_lease() {
    let project = new_project();
    let worlds = processes(&project);
    for round in 0..10 {
        let subject = format!("turn:{round}");
        let got = race(&worlds, 12, |number, w| {
            let holder = format!("runner-{number}");
            let lease = wait(w.store.acquire_lease(subject.clone(), holder.clone(), 60_000)).unwrap();
            let claim = wait(w.store.claim(subject.clone(), holder.clone(), 1)).unwrap();
            (lease.is_some(), claim.holder == holder, claim)
        });
        assert_eq!(got.iter().filter(|(lease, ..)| *lease).count(), 1);
        assert_eq!(got.iter().filter(|(_, claimed, _)| *claimed).count(), 1);
        assert!(got.iter().all(|(.., claim)| *claim == got[0].2));
        let delivered = race(&worlds, 6, |_, w| {
            wait(w.store.advance_claim(subject.clone(), 1, ClaimState::Delivered)).unwrap()
        });
        assert_eq!(delivered.iter().filter(|moved| **moved).count(), 1, "delivered once");
    }
}

/// Three writers on one project: the log has no gap, and no note is lost or there twice.
#[test]
fn writers_of_many_processes_leave_no_gap_in_the_log() {
    let project = new_project();
    let worlds = processes(&project);
    for name in ["a", "b", "c", "d"] {
        wait(worlds[0].feature(name));
    }
    race(&worlds, 12, |number, w| {
        for round in 0..10 {
            let feature = ["a", "b", "c", "d"][(number + round) % 4];
            let note = format!("{number}/{round}");
            let input = json!({"feature_id": feature, "note": note, "operation_id": note});
            wait(w.call(Role::Human, "feature.log_append", input)).unwrap();
        }
    });
    let log = wait(worlds[1].events());
    let mut notes: Vec<Value> = log
        .iter()
        .filter_map(|recorded| match &recorded.stamped.event {
            Event::Noted { note } => Some(json!(note)),
            _ => None,
        })
        .collect();
    notes.sort_by_key(Value::to_string);
    notes.dedup();
    assert_eq!((log.len(), notes.len()), (124, 120));
    wait(worlds[2].check());
}
