//! Reading: the clock's view without a write, order and cursors, what a turn is told, and being woken.

use crate::support::{QUARTER, START, World, feature_id, ids, on_every_backend, page, question_id, wait};
use aop_kernel::question::QuestionStatus;
use aop_kernel::role::Role;
use aop_kernel::status::Status;
use aop_kernel::time::Timestamp;
use aop_kernel::tools::QuestionFilter;
use aop_store::{EventPage, FeaturePage, Inbox, QuestionPage};
use serde_json::{Value, json};

on_every_backend!(
    reads_present_expiry_without_writing_and_agree_with_the_later_commit,
    expire_commits_everything_due_however_much_it_is,
    a_clock_that_jumps_backwards_never_takes_time_back,
    a_lease_counts_as_a_commit_for_the_clock,
    question_pages_follow_each_other_without_gap_or_repeat,
    question_pages_hold_while_questions_fall_due,
    records_are_the_page_of_questions_as_everybody_writes_it,
    lists_are_ordered_by_creation_then_id_over_all_features,
    unknown_things_are_not_found,
    feature_list_filters_and_hides_ad_hoc_ones,
    context_shows_the_last_n_answers_of_this_feature_newest_first,
    context_shows_open_questions_and_the_specification,
    context_is_of_one_moment_while_others_write,
    activity_state_is_waiting_input_exactly_while_awaiting_input,
    events_have_no_gap_and_pages_continue_after_a_number,
    changes_wake_after_a_commit_and_not_after_a_refusal,
    changed_since_names_each_feature_with_its_first_event,
    next_deadline_is_the_earliest_of_the_open_questions,
    the_inbox_is_ordered_by_deadline_then_age_and_its_pages_are_one_list,
    the_inbox_shows_nothing_that_the_clock_has_closed,
    the_inbox_is_counted_a_thousand_beyond_the_page_and_says_that_there_are_more,
    the_last_events_of_a_feature_are_read_backwards,
    the_events_of_a_feature_are_found_however_many_of_others_lie_between,
);

async fn reads_present_expiry_without_writing_and_agree_with_the_later_commit(w: &World) {
    w.policy(|policy| policy.max_open_questions_per_feature = 3);
    w.feature_in("strict", Status::Building).await;
    w.ask("strict").await;
    w.later(5);
    w.ask_aside("strict").await;
    w.policy(|policy| policy.strict = false);
    for (name, decision) in
        [("judged", "engine_judgement"), ("declined", "decline"), ("default", "use_default")]
    {
        w.feature_in(name, Status::Qa).await;
        let expected = json!({"kind": "free_text", "default": "d"});
        w.ask_with(name, json!({"default_decision_policy": decision, "expected_answer": expected}))
            .await
            .unwrap();
    }
    w.policy(|policy| {
        policy.strict = true;
        policy.on_timeout = aop_kernel::policy::OnTimeout::FailFeature;
    });
    w.feature("failing").await;
    w.ask("failing").await;
    w.ask_aside("failing").await;
    w.later(QUARTER + 1_000);
    let events = w.events().await;
    let answers = w.store.view(feature_id("default"), 9).await.unwrap().unwrap().answers;
    let view = (w.everything().await, w.context("default").await, answers);
    assert_eq!(w.events().await, events, "reading wrote nothing");
    assert_eq!(w.status("strict").await, Status::Blocked);
    assert_eq!(w.status("failing").await, Status::Failed);
    w.later(60_000);
    assert_eq!(w.store.expire().await.unwrap(), 5);
    let answers = w.store.view(feature_id("default"), 9).await.unwrap().unwrap().answers;
    assert_eq!((w.everything().await, w.context("default").await, answers), view);
    assert!(w.events().await.len() > events.len());
}

async fn expire_commits_everything_due_however_much_it_is(w: &World) {
    for number in 0..300 {
        let id = format!("f{number}");
        w.feature(&id).await;
        w.ask(&id).await;
    }
    w.later(QUARTER);
    assert_eq!(w.store.expire().await.unwrap(), 300);
    assert_eq!(w.store.expire().await.unwrap(), 0);
    assert_eq!(w.store.next_deadline().await.unwrap(), None);
}

async fn a_clock_that_jumps_backwards_never_takes_time_back(w: &World) {
    w.policy(|policy| policy.max_open_questions_per_feature = 3);
    w.feature("a").await;
    let first = w.ask_aside("a").await;
    w.later(-3_600_000);
    let second = w.ask_aside("a").await;
    assert_eq!(w.store.now().await.unwrap(), Timestamp::from_millis(START));
    assert_eq!(w.record(&second).await["created_at"], w.record(&first).await["created_at"]);
    assert_eq!(w.list("a", "open").await, [first.clone(), second.clone()]);
    w.later(3_600_000 + QUARTER);
    w.store.expire().await.unwrap();
    w.later(-2 * QUARTER);
    assert_eq!(w.record(&first).await["status"], "expired", "what expired stays expired");
    let note = json!({"feature_id": "a", "note": "n"});
    w.call(Role::Human, "feature.log_append", note).await.unwrap();
    let times: Vec<_> = w.events().await.iter().map(|event| event.stamped.at).collect();
    assert!(times.is_sorted(), "{times:?}");
}

async fn a_lease_counts_as_a_commit_for_the_clock(w: &World) {
    w.feature("a").await;
    w.later(60_000);
    let lease = w.store.acquire_lease("run".into(), "one".into(), 1_000).await.unwrap().unwrap();
    w.later(-30_000);
    assert_eq!(w.store.now().await.unwrap(), Timestamp::from_millis(START + 60_000));
    let renewed = w.store.acquire_lease("run".into(), "one".into(), 1_000).await.unwrap().unwrap();
    assert_eq!(renewed, lease, "a renewal never shortens a lease");
}

/// Walks a list page by page.
async fn walk(w: &World, mut page: QuestionPage) -> Vec<String> {
    let mut seen = Vec::new();
    loop {
        let items = w.store.questions(page.clone()).await.unwrap();
        let Some(last) = items.last() else { return seen };
        assert!(items.len() <= page.limit);
        page.after = Some((last.created_at, last.id.clone()));
        seen.extend(items.iter().map(|item| item.id.to_string()));
    }
}

async fn question_pages_follow_each_other_without_gap_or_repeat(w: &World) {
    w.policy(|policy| policy.max_open_questions_per_feature = 99);
    let mut asked = Vec::new();
    for feature in ["b", "a"] {
        w.feature(feature).await;
        for number in 0..7 {
            w.later(i64::from(number % 3 == 0));
            asked.push(w.ask_aside(feature).await);
        }
    }
    for limit in [1, 2, 3, 5, 14, 15] {
        assert_eq!(walk(w, page(QuestionFilter::All, limit)).await, asked);
        assert_eq!(walk(w, page(QuestionFilter::Only(QuestionStatus::Open), limit)).await, asked);
        let own = QuestionPage { feature: Some(feature_id("a")), ..page(QuestionFilter::All, limit) };
        assert_eq!(walk(w, own).await, asked[7..]);
    }
    assert!(w.store.questions(page(QuestionFilter::All, 0)).await.unwrap().is_empty());
}

async fn question_pages_hold_while_questions_fall_due(w: &World) {
    w.policy(|policy| policy.max_open_questions_per_feature = 99);
    w.feature("a").await;
    let (mut short, mut long) = (Vec::new(), Vec::new());
    for _ in 0..4 {
        let changes = json!({"blocking": false, "timeout_ms": 10_000});
        short.push(w.ask_with("a", changes).await.unwrap()["question_id"].as_str().unwrap().to_owned());
        long.push(w.ask_aside("a").await);
    }
    w.later(10_000);
    for limit in [1, 3, 99] {
        assert_eq!(walk(w, page(QuestionFilter::Only(QuestionStatus::Open), limit)).await, long);
        assert_eq!(walk(w, page(QuestionFilter::Only(QuestionStatus::Expired), limit)).await, short);
        assert_eq!(walk(w, page(QuestionFilter::All, limit)).await.len(), 8);
    }
}

async fn records_are_the_page_of_questions_as_everybody_writes_it(w: &World) {
    w.policy(|policy| policy.max_open_questions_per_feature = 99);
    for feature in ["a", "b"] {
        w.feature(feature).await;
        let answered = w.ask_aside(feature).await;
        w.answer(feature, &answered, json!("\"yes\"\n")).await.unwrap();
        w.ask_with(feature, json!({"blocking": false, "timeout_ms": 10_000})).await.unwrap();
        w.ask_aside(feature).await;
    }
    for due in [false, true] {
        for filter in [QuestionFilter::All]
            .into_iter()
            .chain(QuestionStatus::ALL.iter().map(|s| QuestionFilter::Only(*s)))
        {
            for feature in [None, Some(feature_id("a"))] {
                let page = QuestionPage { feature, ..page(filter, 3) };
                let questions = w.store.questions(page.clone()).await.unwrap();
                let records = w.store.records(page.clone()).await.unwrap();
                let texts: Vec<&str> = records.iter().map(|record| record.json().unwrap().get()).collect();
                let written: Vec<String> =
                    questions.iter().map(|q| serde_json::to_string(q).unwrap()).collect();
                assert_eq!(texts, written, "due: {due}, {page:?}");
                let read: Vec<_> = records.iter().map(|record| record.question().unwrap()).collect();
                assert_eq!(read, questions);
            }
        }
        w.later(10_000);
    }
}

async fn lists_are_ordered_by_creation_then_id_over_all_features(w: &World) {
    for feature in ["c", "a", "b"] {
        w.feature(feature).await;
        w.ask(feature).await;
    }
    let (features, questions) = w.everything().await;
    assert_eq!(features.iter().map(|feature| feature.id.as_str()).collect::<Vec<_>>(), ["a", "b", "c"]);
    assert!(questions.is_sorted_by_key(|question| (question.created_at, question.id.clone())));
    assert_eq!(
        questions.iter().map(|question| question.feature_id.as_str()).collect::<Vec<_>>(),
        ["c", "a", "b"]
    );
}

async fn unknown_things_are_not_found(w: &World) {
    let input = json!({"feature_id": "nowhere"});
    for tool in ["feature.get", "feature.get_context", "feature.question_list"] {
        let refusal = w.refuses("feature_not_found", w.call(Role::Human, tool, input.clone())).await;
        assert_eq!(refusal.facts["feature_id"], "nowhere");
    }
    let unknown = question_id("q_01J9ZQ4V7K3M2N1P0R5S6T7V8W");
    assert_eq!(w.store.question(unknown.clone()).await.unwrap(), None);
    assert_eq!(w.store.reveal(unknown).await.unwrap(), None);
    assert_eq!(w.store.feature(feature_id("nowhere")).await.unwrap(), None);
    assert!(w.store.feature_files(feature_id("nowhere"), 0).await.unwrap().is_none());
}

async fn feature_list_filters_and_hides_ad_hoc_ones(w: &World) {
    w.feature("a").await;
    w.feature_in("b", Status::Building).await;
    let input = crate::support::question("ask-1", json!({"operation_id": "adhoc", "role": "human"}));
    let request = crate::support::request(w, Role::Human, "feature.question_create", &input);
    w.service().submit(request.bringing_feature("a script asks".into())).await.unwrap();
    let list = async |input: Value| {
        let data = w.call(Role::Human, "feature.list", input).await.unwrap();
        let items = data["items"].as_array().unwrap().clone();
        items.iter().map(|item| item["feature_id"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(list(json!({})).await, ["a", "b"]);
    assert_eq!(list(json!({"all": true})).await, ["a", "ask-1", "b"]);
    assert_eq!(list(json!({"status": "building"})).await, ["b"]);
    let due = FeaturePage { status: Some(Status::Blocked), adhoc: true, only: None };
    w.later(QUARTER);
    assert_eq!(
        w.store.features(due).await.unwrap()[0].id.as_str(),
        "ask-1",
        "filtered as the clock leaves it"
    );
}

async fn context_shows_the_last_n_answers_of_this_feature_newest_first(w: &World) {
    w.feature("other").await;
    let foreign = w.ask("other").await;
    w.feature("a").await;
    let mut answered = Vec::new();
    for number in 0..5 {
        let id = w.ask("a").await;
        w.later(10);
        w.answer("a", &id, json!(format!("answer {number}"))).await.unwrap();
        answered.insert(0, id);
    }
    w.later(10);
    w.answer("other", &foreign, json!("x")).await.unwrap();
    for limit in [3, 1, 9] {
        w.policy(|policy| policy.context_answer_history_limit = limit);
        let human_input = w.context("a").await["human_input"].clone();
        let shown = ids(&human_input["recent_answers"]);
        assert_eq!(shown, answered[..answered.len().min(limit as usize)]);
        assert_eq!(human_input["latest_answer"]["question_id"], answered[0]);
    }
}

async fn context_shows_open_questions_and_the_specification(w: &World) {
    let input = json!({"feature_id": "a", "title": "T", "spec": "# What\n\nto build"});
    w.call(Role::Human, "feature.create", input).await.unwrap();
    let context = w.context("a").await;
    assert_eq!((&context["spec"], &context["title"]), (&json!("# What\n\nto build"), &json!("T")));
    assert_eq!(
        context["human_input"],
        json!({"open_questions": [], "latest_answer": null, "recent_answers": []})
    );
    let id = w.ask("a").await;
    let context = w.context("a").await;
    assert_eq!(ids(&context["human_input"]["open_questions"]), [id]);
    assert_eq!(context["state"]["status"], "awaiting_input");
}

/// Status, open questions and answers belong together however fast they change.
async fn context_is_of_one_moment_while_others_write(w: &World) {
    w.policy(|policy| policy.context_answer_history_limit = 99);
    w.feature("a").await;
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            wait(async {
                for _ in 0..40 {
                    let id = w.ask("a").await;
                    w.answer("a", &id, json!("x")).await.unwrap();
                }
            });
        });
        let reader = scope.spawn(move || {
            while !writer.is_finished() {
                let context = wait(w.context("a"));
                let open = ids(&context["human_input"]["open_questions"]);
                let waits_for = context["state"]["open_question_id"].as_str();
                assert_eq!(open.iter().map(String::as_str).collect::<Vec<_>>(), Vec::from_iter(waits_for));
                let answers = context["human_input"]["recent_answers"].as_array().unwrap().len() as u64;
                let version = context["state"]["version"].as_u64().unwrap();
                // One event made the feature; then two for each question and two for each answer.
                assert_eq!(version, 1 + 4 * answers + 2 * open.len() as u64);
            }
        });
        reader.join().unwrap();
    });
}

async fn activity_state_is_waiting_input_exactly_while_awaiting_input(w: &World) {
    let activity = async |id: &str| {
        let data = w.call(Role::Human, "feature.get", json!({"feature_id": id})).await.unwrap();
        (data["status"].as_str().unwrap().to_owned(), data["activity_state"].as_str().unwrap().to_owned())
    };
    for status in Status::ALL {
        w.feature_in(status.as_str(), *status).await;
        let (shown, activity) = activity(status.as_str()).await;
        assert_eq!(shown, status.as_str());
        assert_eq!(activity == "waiting_input", *status == Status::AwaitingInput, "{status}: {activity}");
    }
    w.later(QUARTER);
    assert_eq!(activity("awaiting_input").await, ("blocked".to_owned(), "blocked".to_owned()));
}

async fn events_have_no_gap_and_pages_continue_after_a_number(w: &World) {
    w.feature("a").await;
    w.feature("b").await;
    w.ask("a").await;
    w.refuses("question_conflict_open", w.ask_with("a", json!({}))).await;
    w.transition("b", Status::Building).await.unwrap();
    let all = w.events().await;
    let mut seen = Vec::new();
    loop {
        let after = seen.last().map_or(0, |event: &aop_kernel::event::Recorded| event.seq);
        let some = w.store.events(EventPage { after, feature: None, limit: 2 }).await.unwrap();
        if some.is_empty() {
            break;
        }
        seen.extend(some);
    }
    assert_eq!(seen, all);
    let own = EventPage { after: 1, feature: Some(feature_id("a")), limit: 1 };
    assert_eq!(w.store.events(own).await.unwrap()[0].seq, 3);
}

async fn changes_wake_after_a_commit_and_not_after_a_refusal(w: &World) {
    w.feature("a").await;
    let mut changes = w.store.changes();
    changes.mark_unchanged();
    w.refuses(
        "feature_already_exists",
        w.call(Role::Human, "feature.create", json!({"feature_id": "a", "title": "t"})),
    )
    .await;
    assert!(!changes.has_changed().unwrap());
    w.ask("a").await;
    changes.changed().await.unwrap();
    let last = w.events().await.len() as u64;
    assert_eq!(*changes.borrow_and_update(), last);
}

async fn changed_since_names_each_feature_with_its_first_event(w: &World) {
    w.feature("a").await;
    w.feature("b").await;
    w.transition("a", Status::Building).await.unwrap();
    w.transition("a", Status::Qa).await.unwrap();
    let (a, b) = (feature_id("a"), feature_id("b"));
    assert_eq!(w.store.changed_since(0).await.unwrap(), (vec![(a.clone(), 1), (b.clone(), 2)], 4));
    assert_eq!(w.store.changed_since(1).await.unwrap(), (vec![(a.clone(), 3), (b, 2)], 4));
    assert_eq!(w.store.changed_since(3).await.unwrap(), (vec![(a, 4)], 4));
    assert_eq!(w.store.changed_since(4).await.unwrap(), (vec![], 4));
}

async fn next_deadline_is_the_earliest_of_the_open_questions(w: &World) {
    assert_eq!(w.store.next_deadline().await.unwrap(), None);
    w.feature("a").await;
    w.feature("b").await;
    w.ask("a").await;
    let data = w.ask_with("b", json!({"timeout_ms": 30_000})).await.unwrap();
    let deadline = async || w.store.next_deadline().await.unwrap().map(|at| at.as_millis() - START);
    assert_eq!(deadline().await, Some(30_000));
    w.answer("b", data["question_id"].as_str().unwrap(), json!("x")).await.unwrap();
    assert_eq!(deadline().await, Some(QUARTER));
}

async fn the_inbox_is_ordered_by_deadline_then_age_and_its_pages_are_one_list(w: &World) {
    w.policy(|policy| policy.timeout_ms = 0);
    let mut expected = Vec::new();
    for (name, timeout) in
        [("never-a", 0), ("late", 90_000), ("soon", 30_000), ("never-b", 0), ("tie", 30_000 - 20)]
    {
        w.feature(name).await;
        let asked = w.ask_with(name, json!({"timeout_ms": timeout})).await.unwrap();
        expected.push((name, asked["question_id"].as_str().unwrap().to_owned()));
        w.later(10);
    }
    let id = |name: &str| expected.iter().find(|(known, _)| *known == name).unwrap().1.clone();
    let order = ["soon", "tie", "late", "never-a", "never-b"].map(id);
    let shown = |items: &[aop_kernel::question::Question]| {
        items.iter().map(|question| question.id.to_string()).collect::<Vec<_>>()
    };
    let whole = w.store.inbox(0, 100).await.unwrap();
    assert_eq!((whole.total, shown(&whole.items)), (5, order.to_vec()));
    for size in 1..=5 {
        let mut seen = Vec::new();
        while seen.len() < 5 {
            let page = w.store.inbox(seen.len(), size).await.unwrap();
            assert_eq!(page.total, 5);
            assert!(!page.items.is_empty() && page.items.len() <= size);
            seen.extend(shown(&page.items));
        }
        assert_eq!(seen, order);
    }
    assert!(w.store.inbox(5, 3).await.unwrap().items.is_empty());
}

async fn the_inbox_shows_nothing_that_the_clock_has_closed(w: &World) {
    w.policy(|policy| {
        policy.max_open_questions_per_feature = 3;
        policy.on_timeout = aop_kernel::policy::OnTimeout::FailFeature;
    });
    w.feature("fails").await;
    w.ask("fails").await;
    w.later(1_000);
    w.ask_aside("fails").await;
    w.feature("other").await;
    let other = w.ask("other").await;
    w.later(QUARTER - 1_000);
    let inbox = w.store.inbox(0, 9).await.unwrap();
    assert_eq!(inbox.total, 1, "a failed feature takes its other questions with it");
    assert_eq!(inbox.items[0].id.as_str(), other);
}

async fn the_inbox_is_counted_a_thousand_beyond_the_page_and_says_that_there_are_more(w: &World) {
    let features: Vec<String> = (0..=Inbox::COUNTED).map(|number| format!("f-{number}")).collect();
    for feature in &features {
        w.feature(feature).await;
        w.ask(feature).await;
    }
    let seen = async |skip, limit| {
        let inbox = w.store.inbox(skip, limit).await.unwrap();
        (inbox.total, inbox.more, inbox.items.len())
    };
    assert_eq!(seen(0, 0).await, (Inbox::COUNTED, true, 0));
    assert_eq!(seen(0, 1).await, (Inbox::COUNTED + 1, false, 1), "all of them, and no more");
    assert_eq!(seen(Inbox::COUNTED, 9).await, (Inbox::COUNTED + 1, false, 1), "the last page is not full");
}

async fn the_last_events_of_a_feature_are_read_backwards(w: &World) {
    for name in ["a", "b"] {
        w.feature(name).await;
    }
    for number in 0..5 {
        for name in ["a", "b"] {
            let note = json!({"feature_id": name, "note": format!("{name}{number}")});
            w.call(Role::Human, "feature.log_append", note).await.unwrap();
        }
    }
    let all =
        w.store.events(EventPage { feature: Some(feature_id("a")), ..EventPage::default() }).await.unwrap();
    let mut backwards = Vec::new();
    let mut before = None;
    loop {
        let page = w.store.last_events(feature_id("a"), before, 2).await.unwrap();
        let Some(last) = page.last() else { break };
        before = Some(last.seq);
        backwards.extend(page);
    }
    backwards.reverse();
    assert_eq!(backwards, all);
}

async fn the_events_of_a_feature_are_found_however_many_of_others_lie_between(w: &World) {
    w.feature("a").await;
    w.feature("b").await;
    for others in [0, 0, 1, 7, 8, 9, 20, 0] {
        for name in std::iter::repeat_n("b", others).chain(["a"]) {
            let note = json!({"feature_id": name, "note": name});
            w.call(Role::Human, "feature.log_append", note).await.unwrap();
        }
    }
    for name in ["a", "b"] {
        let mut own = w.store.events(EventPage::default()).await.unwrap();
        own.retain(|event| event.stamped.feature_id.as_str() == name);
        let page = EventPage { feature: Some(feature_id(name)), ..EventPage::default() };
        assert_eq!(w.store.events(page.clone()).await.unwrap(), own);
        let rest = EventPage { after: own[2].seq, ..page };
        assert_eq!(w.store.events(rest).await.unwrap(), own[3..]);
        let log = w.store.feature_files(feature_id(name), 0).await.unwrap().unwrap().log;
        assert_eq!(log.lines().count(), own.len());
        own.reverse();
        assert_eq!(w.store.last_events(feature_id(name), None, usize::MAX).await.unwrap(), own);
    }
}
