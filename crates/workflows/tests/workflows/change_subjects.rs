//! Changes as review subjects: where their evidence is found, what counts as pre-existing, and what a landing in several
//! files fixes.

use tribunal_engine::{
    files::{FrozenFile, Hunk, LandedFile},
    ids::{FindingId, Hash},
    reason::RunReason,
};
use tribunal_testkit::{
    ScriptedWorld,
    samples::{self, findings_reply, fixes_reply},
    trial::run_first_review as live,
};
use tribunal_workflows::{
    findings::{
        finding::{DeferralReason, DismissalReason, Evidence, FindingStatus, Severity},
        subject::{ChangedPath, CodeChange, Subject},
    },
    review::{
        ground::{EvidenceScope, GroundedEvidence},
        level::ReviewLevel,
        order::ReviewOrder,
    },
    runs::{
        effect::{Effect, Freeze, FreezeOutcome, FrozenSubject, Land, LandOutcome, LandedChange, Reply},
        plan::RunPlan,
        types::RunEvent,
    },
    tasks::{brief::RaisedFinding, claims::ClaimStatus},
};

const CODE_TEXT: &str =
    "fn start() {}\nfn limit() -> u32 {\n    100\n}\n\n\n\n\n\n// an old flaw\nfn late() { limit(); }\n";
const NOTES_TEXT: &str = "# Notes\n\n## Use\n\nCall it.\n";
const DIFF: &str = "--- a/src/a.rs\n+++ b/src/a.rs\n@@ -1,4 +1,4 @@\n fn start() {}\n-fn limit(user: &User) -> u32 {\n-    user.check();\n\
                    +fn limit() -> u32 {\n     100\n }\n--- a/docs/b.md\n+++ b/docs/b.md\n@@ -3,1 +3,3 @@\n ## Use\n+\n+Call it.\n";

fn change_subject() -> Subject {
    let changed_file = |path: &str| ChangedPath { path: path.into(), from: None };
    let files = vec![changed_file("docs/b.md"), changed_file("src/a.rs")];
    Subject::Change(Box::new(CodeChange {
        range: "main..HEAD".into(),
        base: "b".into(),
        files,
        ..CodeChange::default()
    }))
}

fn frozen_files() -> Vec<FrozenFile> {
    let frozen_file = |path: &str, text: &str| FrozenFile { path: path.into(), text: text.into() };
    vec![frozen_file("docs/b.md", NOTES_TEXT), frozen_file("src/a.rs", CODE_TEXT)]
}

fn claim_in(file_name: Option<&str>, evidence: Evidence, line_number: Option<u32>) -> RaisedFinding {
    RaisedFinding {
        evidence,
        file: file_name.map(String::from),
        line: line_number,
        ..samples::raised_flaw(1, Severity::High)
    }
}

fn quote_evidence(text: &str) -> Evidence {
    Evidence::Quote { text: text.into() }
}

fn absence_evidence(heading: &str, term: &str) -> Evidence {
    Evidence::Absence { heading: heading.into(), terms: vec![term.into()] }
}

fn find_evidence(raised: &RaisedFinding) -> Result<GroundedEvidence, String> {
    let (subject, files) = (change_subject(), frozen_files());
    EvidenceScope::from_subject(&subject, DIFF, &files).ok_or("no scene")?.find_evidence(raised)
}

/// Returns the file and line of the evidence, and whether it is older than the change.
fn found_place(file_name: Option<&str>, evidence: Evidence, line_number: Option<u32>) -> (String, u32, bool) {
    let grounded =
        find_evidence(&claim_in(file_name, evidence, line_number)).unwrap_or_else(|reason| panic!("{reason}"));
    (grounded.place.file, grounded.place.line, grounded.pre_existing)
}

#[test]
fn a_quote_is_found_in_the_file_that_contains_it_even_if_another_was_named() {
    assert_eq!(found_place(None, quote_evidence("fn limit() -> u32 {"), None), ("src/a.rs".into(), 2, false));
    assert_eq!(
        found_place(Some("a.rs"), quote_evidence("fn limit() -> u32 {"), Some(99)),
        ("src/a.rs".into(), 2, false)
    );
    assert_eq!(
        found_place(Some("docs/b.md"), quote_evidence("fn limit() -> u32 {"), None),
        ("src/a.rs".into(), 2, false)
    );
    assert!(find_evidence(&claim_in(None, quote_evidence("this was never written"), None)).is_err());
}

#[test]
fn a_quote_away_from_the_changed_lines_is_pre_existing() {
    assert_eq!(found_place(None, quote_evidence("// an old flaw"), None), ("src/a.rs".into(), 10, true));
}

#[test]
fn a_line_that_uses_a_name_defined_by_the_change_belongs_to_the_change() {
    assert_eq!(found_place(None, quote_evidence("fn late() { limit(); }"), None), ("src/a.rs".into(), 11, false));
}

#[test]
fn removed_lines_can_be_quoted_and_keep_their_old_place() {
    assert_eq!(found_place(Some("src/a.rs"), quote_evidence("user.check();"), None), ("src/a.rs".into(), 2, false));
}

#[test]
fn only_prose_files_have_headings() {
    assert_eq!(found_place(None, absence_evidence("Use", "deadline"), None), ("docs/b.md".into(), 3, false));
    assert!(find_evidence(&claim_in(None, absence_evidence("No such part", "deadline"), None)).is_err());
}

#[test]
fn an_absence_may_name_a_file_or_the_whole_change() {
    assert_eq!(found_place(None, absence_evidence("src/a.rs", "overflow"), None), ("src/a.rs".into(), 1, false));
    assert!(find_evidence(&claim_in(None, absence_evidence("src/a.rs", "limit"), None)).unwrap_err().contains("limit"));
    assert!(find_evidence(&claim_in(None, absence_evidence("", "overflow"), None)).is_ok());
    // One of the files contains the term, so it is not absent.
    assert!(find_evidence(&claim_in(None, absence_evidence("", "limit"), None)).is_err());
}

fn change_plan() -> RunPlan<ReviewOrder> {
    samples::sample_plan().with_change(|plan| {
        plan.order.subject = change_subject();
        plan.order.level = Some(ReviewLevel::Minimal);
    })
}

fn frozen_change() -> Reply {
    Reply::Freeze(FreezeOutcome::Frozen(FrozenSubject {
        text: DIFF.into(),
        hash: Hash::new("tree"),
        files: frozen_files(),
        remarks: vec!["a big one".into()],
    }))
}

fn landed_files(files: Vec<LandedFile>) -> Reply {
    let (hunks, text, hash) = (Vec::new(), String::new(), Hash::new("tree-2"));
    Reply::Land(LandOutcome::Landed(LandedChange { hunks, text, hash, files, checks: Vec::new() }))
}

fn landed_file(path: &str, old_start: u32, text: &str) -> LandedFile {
    let hunks = vec![Hunk { old_start, old_len: 1, new_len: 1 }];
    LandedFile { path: path.into(), hunks, text: text.into() }
}

fn world_with_two_flaws() -> ScriptedWorld {
    let claims = vec![
        claim_in(Some("src/a.rs"), quote_evidence("fn limit() -> u32 {"), None),
        RaisedFinding {
            description: "too short".into(),
            ..claim_in(Some("docs/b.md"), quote_evidence("Call it."), None)
        },
        RaisedFinding {
            description: "old".into(),
            ..claim_in(Some("src/a.rs"), quote_evidence("// an old flaw"), None)
        },
        RaisedFinding {
            description: "invented".into(),
            ..claim_in(None, quote_evidence("this was never written"), None)
        },
    ];
    ScriptedWorld::default()
        .reply_on("round-1/freeze", frozen_change())
        .reply_on("round-1/review/adversarial", findings_reply(claims))
        .reply_on("round-2/freeze", frozen_change())
        .reply_on("round-2/review/adversarial", findings_reply(vec![]))
        .reply_on("end/look", frozen_change())
}

#[test]
fn a_finding_is_fixed_by_a_change_in_its_own_file_and_not_by_one_elsewhere() {
    let fixed_reply =
        || fixes_reply(vec![(FindingId(1), ClaimStatus::Fixed), (FindingId(2), ClaimStatus::Fixed)], true);
    let world = world_with_two_flaws()
        .reply_on("round-1/fix-1/fix/1", fixed_reply())
        .reply_on(
            "round-1/fix-1/fix/1/land",
            landed_files(vec![landed_file("src/a.rs", 2, &CODE_TEXT.replace("limit() -> u32", "limit() -> u64"))]),
        )
        .reply_on("round-1/fix-2/fix/1", fixed_reply())
        .reply_on(
            "round-1/fix-2/fix/1/land",
            landed_files(vec![landed_file("docs/b.md", 5, "# Notes\n\n## Use\n\nCall it twice.\n")]),
        );
    let (ending, view, trial) = live(change_plan(), world);
    assert_eq!(ending.reason, RunReason::GoalMet, "{ending:?}");
    let notes_on = |id: u32| -> Vec<String> {
        view.as_review().unwrap().findings[&FindingId(id)].history.iter().map(|step| step.note.clone()).collect()
    };
    // Findings are numbered in the order of their places, and `docs/b.md` comes before `src/a.rs`.
    assert!(notes_on(1).iter().any(|note| note.contains("nothing near it was changed")), "{:?}", notes_on(1));
    assert!(!notes_on(2).iter().any(|note| note.contains("nothing near it was changed")), "{:?}", notes_on(2));
    assert_eq!(
        view.as_review().unwrap().findings[&FindingId(3)].status,
        FindingStatus::Deferred { why: DeferralReason::PreExisting }
    );
    assert_eq!(
        view.as_review().unwrap().findings[&FindingId(4)].status,
        FindingStatus::Dismissed { why: DismissalReason::Ungrounded }
    );
    let warned = trial.journal.iter().any(|entry| entry.event == RunEvent::Warned { text: "a big one".into() });
    assert!(warned, "what agents will not find in their copies is said");
}

#[test]
fn a_fixer_may_change_files_that_no_other_fixer_holds_and_add_files_next_to_them() {
    let mut plan = change_plan();
    plan.order.fixers.max_issues_per_agent = 1;
    plan.order.fixers.max_concurrent = 2;
    let claims = (0..4).map(|claim_number| {
        let (claimed_file, quoted_line) =
            if claim_number % 2 == 0 { ("src/a.rs", "fn limit() -> u32 {") } else { ("docs/b.md", "Call it.") };
        RaisedFinding {
            description: format!("{claim_number} is wrong with it"),
            ..claim_in(Some(claimed_file), quote_evidence(quoted_line), None)
        }
    });
    let world = ScriptedWorld::default()
        .reply_on("round-1/freeze", frozen_change())
        .reply_on("round-1/review/adversarial", findings_reply(claims.collect()))
        .reply_on("round-1/fix-1/fix/1", fixes_reply(vec![(FindingId(1), ClaimStatus::Fixed)], true))
        .reply_on("round-1/fix-1/fix/2", fixes_reply(vec![(FindingId(3), ClaimStatus::Fixed)], true));
    let (_, _, trial) = live(plan, world);
    let allowed_paths: Vec<Vec<String>> = trial
        .journal
        .iter()
        .filter_map(|entry| match &entry.event {
            RunEvent::EffectStarted { effect: Effect::Land(Land { allowed: allowed_paths, .. }), .. } => {
                Some(allowed_paths.clone())
            }
            _ => None,
        })
        .collect();
    let first_allowed: Vec<&str> = allowed_paths[0].iter().map(String::as_str).collect();
    let expected = [["docs/b.md", "docs/", "src/"], ["src/a.rs", "docs/", "src/"]];
    assert!(
        expected.iter().any(|one| *one == *first_allowed),
        "the other file is held by the other fixer: {first_allowed:?}"
    );
}

#[test]
fn a_file_that_a_fix_created_is_under_review_from_then_on() {
    let created_file = LandedFile {
        path: "src/check.rs".into(),
        hunks: vec![Hunk { old_start: 1, old_len: 0, new_len: 1 }],
        text: "fn check() {}\n".into(),
    };
    let fixed_reply = fixes_reply(vec![(FindingId(1), ClaimStatus::Fixed), (FindingId(2), ClaimStatus::Fixed)], true);
    let changed_files = vec![
        landed_file("src/a.rs", 2, "fn limit() -> u64 {\n"),
        landed_file("docs/b.md", 5, "# Notes\n"),
        created_file,
    ];
    let world = world_with_two_flaws()
        .reply_on("round-1/fix-1/fix/1", fixed_reply)
        .reply_on("round-1/fix-1/fix/1/land", landed_files(changed_files));
    let (ending, _, trial) = live(change_plan(), world);
    assert_eq!(ending.reason, RunReason::GoalMet, "{ending:?}");
    let has_created_file: Vec<bool> = trial
        .journal
        .iter()
        .filter_map(|entry| match &entry.event {
            RunEvent::EffectStarted { effect: Effect::Freeze(Freeze { subject }), .. } => {
                Some(subject.file_paths().contains(&"src/check.rs"))
            }
            _ => None,
        })
        .collect();
    // The subject is frozen for round 1, for the judge, for round 2 and for the last look.
    assert_eq!(has_created_file, [false, false, true, true]);
}

#[test]
fn a_removed_line_is_fixed_when_it_is_restored_and_not_by_a_change_elsewhere() {
    let claims = vec![claim_in(Some("src/a.rs"), quote_evidence("user.check();"), None)];
    let fixed_reply = || fixes_reply(vec![(FindingId(1), ClaimStatus::Fixed)], true);
    let distant_landing =
        landed_files(vec![landed_file("src/a.rs", 10, &CODE_TEXT.replace("an old flaw", "a comment"))]);
    let restoring_landing =
        landed_files(vec![landed_file("src/a.rs", 2, &CODE_TEXT.replace("    100\n", "    user.check();\n    100\n"))]);
    let world = world_with_two_flaws()
        .reply_on("round-1/review/adversarial", findings_reply(claims))
        .reply_on("round-1/fix-1/fix/1", fixed_reply())
        .reply_on("round-1/fix-1/fix/1/land", distant_landing)
        .reply_on("round-1/fix-2/fix/1", fixed_reply())
        .reply_on("round-1/fix-2/fix/1/land", restoring_landing);
    let (ending, view, _) = live(change_plan(), world);
    assert_eq!(ending.reason, RunReason::GoalMet, "{ending:?}");
    let notes: Vec<&str> =
        view.as_review().unwrap().findings[&FindingId(1)].history.iter().map(|step| step.note.as_str()).collect();
    assert!(notes.iter().any(|note| note.contains("nothing near it was changed")), "{notes:?}");
}

#[test]
fn lines_of_a_deleted_file_can_be_quoted() {
    let diff = "--- a/src/auth.rs\n+++ /dev/null\n@@ -1,2 +0,0 @@\n-fn check() {}\n-fn other() {}\n";
    let files = vec![ChangedPath { path: "src/auth.rs".into(), from: None }];
    let subject = Subject::Change(Box::new(CodeChange { range: "x".into(), files, ..CodeChange::default() }));
    let grounded = EvidenceScope::from_subject(&subject, diff, &[])
        .unwrap()
        .find_evidence(&claim_in(None, quote_evidence("fn check() {}"), None))
        .unwrap();
    assert_eq!((grounded.place.file.as_str(), grounded.place.line, grounded.pre_existing), ("src/auth.rs", 1, false));
}

#[test]
fn a_fix_that_reverts_the_change_leaves_nothing_to_review() {
    let frozen_without_diff = || {
        Reply::Freeze(FreezeOutcome::Frozen(FrozenSubject {
            text: String::new(),
            hash: Hash::new("as before"),
            files: frozen_files(),
            remarks: vec![],
        }))
    };
    let fixed_reply = fixes_reply(vec![(FindingId(1), ClaimStatus::Fixed), (FindingId(2), ClaimStatus::Fixed)], true);
    let reverting_landing =
        landed_files(vec![landed_file("src/a.rs", 2, "fn start() {}\n"), landed_file("docs/b.md", 5, "# Notes\n")]);
    let world = world_with_two_flaws()
        .reply_on("round-1/fix-1/fix/1", fixed_reply)
        .reply_on("round-1/fix-1/fix/1/land", reverting_landing)
        .reply_on("round-2/freeze", frozen_without_diff())
        .reply_on("end/look", frozen_without_diff());
    let (ending, _, trial) = live(change_plan(), world);
    assert_eq!(ending.reason, RunReason::GoalMet, "{ending:?}");
    assert!(!trial.world.performed_keys.iter().any(|key| key.starts_with("round-2/review")), "no agent is paid for it");
}
