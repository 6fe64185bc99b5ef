//! Edits of the user in a tracker are understood, and those that are not understood are reported.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

use proptest::prelude::*;
use tribunal_engine::{
    files::Hunk,
    ids::{FindingId, RunId},
    timestamp::Timestamp,
    user_remark::UserRemark,
};
use tribunal_testkit::{
    ScriptedWorld, samples,
    trial::{TrialOutcome, TrialRun, ordered_workflow as workflow},
};
use tribunal_workflows::{
    findings::finding::{
        DeferralReason, DismissalReason, Evidence, Finding, FindingStatus, Severity, StatusTransition, TransitionCause,
    },
    review::{
        ReviewState,
        level::ReviewLevel,
        tracker::{add_stamp, format_status, is_untouched, parse_edits, render_tracker, tracker_run},
    },
    runs::{
        effect::Reply,
        types::{Requests, RunEvent},
        user_request::{FindingChange, FindingSnapshot, UserRequest},
        view::RunView,
    },
    tasks::claims::ClaimStatus,
};

fn finding_with(finding_number: u32, severity: Severity, status: FindingStatus) -> Finding {
    let mut finding = Finding {
        id: FindingId(finding_number),
        severity,
        category: "clarity".into(),
        description: format!("number {finding_number} is unclear"),
        evidence: Evidence::Quote { text: format!("line {finding_number}") },
        place: None,
        found: None,
        suggested_fix: "say when".into(),
        raisers: vec![],
        status: FindingStatus::Open,
        maybe_same_as: None,
        history: vec![],
    };
    finding
        .apply_transition(StatusTransition::new(status, TransitionCause::User, "so it stands"), Timestamp::default());
    finding
}

fn sample_state() -> ReviewState {
    let findings = vec![
        finding_with(1, Severity::High, FindingStatus::Open),
        finding_with(2, Severity::Low, FindingStatus::Fixed),
        finding_with(3, Severity::Medium, FindingStatus::Dismissed { why: DismissalReason::Ungrounded }),
    ];
    ReviewState { round: 1, findings, ..ReviewState::default() }
}

fn render_sample(state: &ReviewState) -> String {
    add_stamp(render_tracker(state, &samples::sample_plan().order, 1, Timestamp::default()), &RunId::new("plan-1234"))
}

/// Builds the request that changes a finding of [`sample_state`].
fn amend_request(finding_number: u32, change: FindingChange) -> UserRequest {
    let known_finding =
        sample_state().findings.into_iter().find(|known_finding| known_finding.id.0 == finding_number).unwrap();
    let snapshot = FindingSnapshot { status: format_status(&known_finding.status), severity: known_finding.severity };
    UserRequest::Amend { finding: FindingId(finding_number), was: Some(snapshot), change }
}

#[test]
fn an_unedited_tracker_has_no_edits_and_names_its_run() {
    let text = render_sample(&sample_state());
    assert_eq!((parse_edits(&text), tracker_run(&text)), (Default::default(), Some("plan-1234")));
    assert!(is_untouched(&text) && !is_untouched(&text.replace("high", "low")));
}

#[test]
fn ticked_boxes_severities_and_statuses_are_understood() {
    let reason = || String::from("it is meant so");
    for (from, to, expected) in [
        ("[ ] F1", "[x] F1", amend_request(1, FindingChange::Fixed)),
        ("[x] F2", "[ ] F2", amend_request(2, FindingChange::Open)),
        ("F1 · high ·", "F1 · critical ·", amend_request(1, FindingChange::Severity { to: Severity::Critical })),
        ("F1 · high ·", "F1 · blocking ·", amend_request(1, FindingChange::Severity { to: Severity::Critical })),
        (
            "high · open",
            "high · dismissed: it is meant so",
            amend_request(1, FindingChange::Dismissed { reason: reason() }),
        ),
        (
            "high · open",
            "high · deferred (it is meant so)",
            amend_request(1, FindingChange::Deferred { reason: reason() }),
        ),
        ("high · open", "high · Dismissed", amend_request(1, FindingChange::Dismissed { reason: String::new() })),
        ("medium · dismissed (evidence not found)", "medium · open", amend_request(3, FindingChange::Open)),
        ("high · open", "high · fixed", amend_request(1, FindingChange::Fixed)),
    ] {
        let text = render_sample(&sample_state());
        assert!(text.contains(from), "{from}");
        let edits = parse_edits(&text.replacen(from, to, 1));
        assert_eq!((edits.requests, edits.unusable_edits), (vec![expected], vec![]), "{from} became {to}");
    }
}

#[test]
fn lines_below_an_issue_are_remarks() {
    let text = render_sample(&sample_state());
    let edited = text.replacen("- Category: clarity", "Ask legal first,\nthey know.\n\n- Category: clarity", 1);
    let remark_request =
        UserRequest::Say(UserRemark { about: Some(FindingId(1)), text: "Ask legal first, they know.".into() });
    assert_eq!((parse_edits(&edited).requests, parse_edits(&edited).unusable_edits), (vec![remark_request], vec![]));
}

#[test]
fn a_heading_without_a_known_id_is_a_finding_of_the_user() {
    let requests_with_block = |block: &str| {
        let text =
            render_sample(&sample_state()).replace("<!-- ISSUES_END -->", &format!("{block}\n<!-- ISSUES_END -->"));
        let edits = parse_edits(&text);
        assert_eq!(edits.unusable_edits, Vec::<String>::new(), "{block}");
        edits.requests
    };
    let added_request = |severity, description: &str, quote: &str| {
        vec![UserRequest::Add { severity, description: description.into(), quote: quote.into() }]
    };
    assert_eq!(
        requests_with_block("### [ ] new · high\n\nThe price is wrong.\nBy a lot.\n- Quote: “7 dollars”\n"),
        added_request(Severity::High, "The price is wrong. By a lot.", "7 dollars")
    );
    assert_eq!(
        requests_with_block("### The price is wrong\n"),
        added_request(Severity::Medium, "The price is wrong", "")
    );
}

#[test]
fn edits_that_are_not_understood_are_reported_with_their_line() {
    let text = render_sample(&sample_state());
    let heading_line = text.lines().position(|heading_line| heading_line.starts_with("### [ ] F1")).unwrap() + 1;
    let problems_of_edit = |from: &str, to: &str| {
        assert!(text.contains(from), "{from}");
        parse_edits(&text.replacen(from, to, 1)).unusable_edits.join("; ")
    };
    assert_eq!(
        problems_of_edit("high · open", "high · whatever"),
        format!("line {heading_line}: unknown status `whatever`")
    );
    assert_eq!(
        problems_of_edit("F1 · high · open", "F1"),
        format!("line {heading_line}: F1 has no valid severity; line {heading_line}: unknown status ``")
    );
    let missing_comment =
        format!("line {heading_line}: the `was:` comment of F1 is missing or belongs to another issue; ");
    assert!(problems_of_edit("<!-- was: F1", "<!-- F1").starts_with(&missing_comment));
    assert_eq!(
        problems_of_edit("- Suggested fix: say when", "- Suggested fix: say who"),
        format!("line {heading_line}: generated lines of F1 were changed")
    );
    assert_eq!(
        problems_of_edit("<!-- ISSUES_END -->", ""),
        "the lines `<!-- ISSUES_START -->` and `<!-- ISSUES_END -->` are missing"
    );
    assert_eq!(
        problems_of_edit("### [ ] F1", "stray\n### [ ] F1"),
        format!("line {heading_line} does not belong to an issue")
    );
}

#[test]
fn edits_outside_the_issues_are_reported_and_not_applied() {
    let text = render_sample(&sample_state());
    let expected_problem = "lines outside the issues were changed, or an issue was removed";
    let tracker_without_issue = {
        let from = text.find("### [x] F2").unwrap();
        let to = text.find("### [ ] F3").unwrap();
        format!("{}{}", &text[..from], &text[to..])
    };
    for edited in [
        format!("{text}\n### [ ] new · critical\n\nat the very end\n"),
        text.replace("## Fix log", "## Fix log\n\nwe should talk about this"),
        text.replace("Workflow: review", "Workflow: mine"),
        tracker_without_issue,
    ] {
        let edits = parse_edits(&edited);
        assert_eq!((edits.requests, edits.unusable_edits), (vec![], vec![expected_problem.to_string()]), "{edited}");
    }
    // Issues that the user adds do not count as changes outside the issues.
    let added = text.replace("<!-- ISSUES_END -->", "### [ ] new · low\n\nmine\n\n<!-- ISSUES_END -->");
    assert_eq!(parse_edits(&added).unusable_edits, Vec::<String>::new());
}

#[test]
fn text_of_agents_is_never_taken_for_an_edit_of_the_user() {
    let mut state = sample_state();
    state.findings[0].description = "### [ ] F1 · low · dismissed: known".into();
    state.findings[0].suggested_fix = "one two three four five six seven".into();
    let text = render_sample(&state);
    assert_eq!(parse_edits(&text), Default::default());
    // A line right under the heading belongs to the user, not to the description below it.
    let edits = parse_edits(&text.replacen("\n\\### [ ] F1", "\nmy word\n\\### [ ] F1", 1));
    assert_eq!(edits.requests, [UserRequest::Say(UserRemark { about: Some(FindingId(1)), text: "my word".into() })]);
    assert_eq!(edits.unusable_edits, Vec::<String>::new());
    // An editor that only wraps lines makes no request.
    let edits = parse_edits(&text.replacen("three four", "three\nfour", 1));
    assert_eq!((edits.requests.len(), edits.unusable_edits.len()), (0, 1));
}

#[test]
fn an_edit_of_a_finding_that_has_changed_meanwhile_is_ignored_with_a_warning() {
    let text_with_flaw = samples::flawed_text(1);
    let repaired_text = text_with_flaw.replace("flaw 1", "repaired");
    let hunk = Hunk { old_start: 5, old_len: 1, new_len: 1 };
    let snapshot = FindingSnapshot { status: "open".into(), severity: Severity::High };
    let late_amendment = |change| UserRequest::Amend { finding: FindingId(1), was: Some(snapshot.clone()), change };
    let requests = vec![
        late_amendment(FindingChange::Dismissed { reason: "we know".into() }),
        late_amendment(FindingChange::Severity { to: Severity::Low }),
    ];
    let world = ScriptedWorld::default()
        .reply_on("round-1/freeze", samples::frozen_reply(&text_with_flaw))
        .reply_on("round-1/review/adversarial", samples::findings_reply(vec![samples::raised_flaw(1, Severity::High)]))
        .reply_on("round-1/fix-1/fix/1", samples::fixes_reply(vec![(FindingId(1), ClaimStatus::Fixed)], true))
        .reply_on("round-1/fix-1/fix/1/land", samples::landed_reply(&repaired_text, vec![hunk]))
        .reply_on("round-2/inbox", Reply::Inbox(Requests { requests }))
        .reply_on("round-2/freeze", samples::frozen_reply(&repaired_text))
        .reply_on("round-2/review/adversarial", samples::findings_reply(vec![]))
        .reply_on("end/look", samples::frozen_reply(&repaired_text));
    let plan = samples::sample_plan().with_change(|plan| plan.order.level = Some(ReviewLevel::Minimal));
    let mut trial = TrialRun::new(plan, world, 1);
    assert!(matches!(trial.run_workflow(workflow, None), TrialOutcome::Done(_)));
    let view = RunView::from_entries(&trial.journal);
    let finding = &view.as_review().unwrap().findings[&FindingId(1)];
    assert_eq!((&finding.status, finding.severity), (&FindingStatus::Fixed, Severity::Low), "the severity still stood");
    let warning_text = "F1 was not changed to dismissed: it was open when you edited it, but is fixed now";
    assert!(trial.journal.iter().any(|e| matches!(&e.event, RunEvent::Warned { text } if text == warning_text)));
}

fn any_status() -> impl Strategy<Value = FindingStatus> {
    prop::sample::select(vec![
        FindingStatus::Open,
        FindingStatus::Fixed,
        FindingStatus::Dismissed { why: DismissalReason::Invalid },
        FindingStatus::Deferred { why: DeferralReason::Goal },
    ])
}

proptest! {
    /// An unedited tracker has no edits, and a single edit is found exactly, for any text that agents may write.
    #[test]
    fn only_what_was_edited_is_found(
        texts in prop::collection::vec(("(### |<!-- ISSUES_END -->|- |\\PC){0,60}", "\\PC{0,40}", any_status()), 1..6),
        at in any::<prop::sample::Index>(),
    ) {
        let mut court = sample_state();
        court.findings.clear();
        for (index, (description, quote, status)) in texts.iter().enumerate() {
            let mut finding = finding_with(index as u32 + 1, Severity::High, status.clone());
            finding.description = description.clone();
            finding.evidence = Evidence::Quote { text: quote.clone() };
            court.findings.push(finding);
        }
        let text = render_sample(&court);
        prop_assert_eq!(parse_edits(&text), Default::default());
        let id = at.index(texts.len()) as u32 + 1;
        let edited = text.replacen(&format!("] F{id} · high"), &format!("] F{id} · low"), 1);
        let was = FindingSnapshot { status: format_status(&texts[id as usize - 1].2), severity: Severity::High };
        let change = FindingChange::Severity { to: Severity::Low };
        prop_assert_eq!(parse_edits(&edited).requests, vec![UserRequest::Amend { finding: FindingId(id), was: Some(was), change }]);
    }

    #[test]
    fn no_edit_makes_it_panic(
        text in "(### |\\[x\\]|F1| · |open|<!-- was: |<!-- ISSUES_START -->|<!-- ISSUES_END -->|\\n|\\PC){0,60}",
    ) {
        parse_edits(&text);
        is_untouched(&text);
    }
}
