//! Changes as review subjects: where their evidence is found, what counts as pre-existing, and what a landing in several
//! files fixes.

use tribunal_core::{
    brief::{Raised, Said},
    effect::{Effect, Freeze, FreezeOutcome, FrozenSubject, Land, LandOutcome, Landed, Reply},
    event::Event,
    files::{FrozenFile, Hunk, LandedFile},
    finding::{Deferral, Dismissal, Evidence, Severity, Status},
    ground::{Grounded, Scene},
    ids::{FindingId, Hash},
    level::Level,
    reason::Reason,
    settings::Settings,
    subject::{Change, Changed, Subject},
};
use tribunal_testkit::{
    ScriptedWorld,
    samples::{self, findings, fixes},
    trial::reviewed as live,
};

const A: &str =
    "fn start() {}\nfn limit() -> u32 {\n    100\n}\n\n\n\n\n\n// an old flaw\nfn late() { limit(); }\n";
const B: &str = "# Notes\n\n## Use\n\nCall it.\n";
const DIFF: &str = "--- a/src/a.rs\n+++ b/src/a.rs\n@@ -1,4 +1,4 @@\n fn start() {}\n-fn limit(user: &User) -> u32 {\n-    user.check();\n\
                    +fn limit() -> u32 {\n     100\n }\n--- a/docs/b.md\n+++ b/docs/b.md\n@@ -3,1 +3,3 @@\n ## Use\n+\n+Call it.\n";

fn subject() -> Subject {
    let file = |path: &str| Changed { path: path.into(), from: None };
    let files = vec![file("docs/b.md"), file("src/a.rs")];
    Subject::Change(Box::new(Change {
        range: "main..HEAD".into(),
        base: "b".into(),
        files,
        ..Change::default()
    }))
}

fn files() -> Vec<FrozenFile> {
    let file = |path: &str, text: &str| FrozenFile { path: path.into(), text: text.into() };
    vec![file("docs/b.md", B), file("src/a.rs", A)]
}

fn claim(file: Option<&str>, evidence: Evidence, line: Option<u32>) -> Raised {
    Raised { evidence, file: file.map(String::from), line, ..samples::raised(1, Severity::High) }
}

fn quote(text: &str) -> Evidence {
    Evidence::Quote { text: text.into() }
}

fn absent(heading: &str, term: &str) -> Evidence {
    Evidence::Absence { heading: heading.into(), terms: vec![term.into()] }
}

fn find(raised: &Raised) -> Result<Grounded, String> {
    let (subject, files) = (subject(), files());
    Scene::of(&subject, DIFF, &files).ok_or("no scene")?.find(raised)
}

/// Returns the file and line of the evidence, and whether it is older than the change.
fn seen(file: Option<&str>, evidence: Evidence, line: Option<u32>) -> (String, u32, bool) {
    let found = find(&claim(file, evidence, line)).unwrap_or_else(|why| panic!("{why}"));
    (found.place.file, found.place.line, found.pre_existing)
}

#[test]
fn a_quote_is_found_in_the_file_that_has_it_whatever_file_was_named() {
    assert_eq!(seen(None, quote("fn limit() -> u32 {"), None), ("src/a.rs".into(), 2, false));
    assert_eq!(seen(Some("a.rs"), quote("fn limit() -> u32 {"), Some(99)), ("src/a.rs".into(), 2, false));
    assert_eq!(seen(Some("docs/b.md"), quote("fn limit() -> u32 {"), None), ("src/a.rs".into(), 2, false));
    assert!(find(&claim(None, quote("nobody wrote this"), None)).is_err());
}

#[test]
fn what_stands_away_from_the_changed_lines_was_there_before() {
    assert_eq!(seen(None, quote("// an old flaw"), None), ("src/a.rs".into(), 10, true));
}

#[test]
fn what_uses_a_name_that_the_change_defines_belongs_to_it() {
    assert_eq!(seen(None, quote("fn late() { limit(); }"), None), ("src/a.rs".into(), 11, false));
}

#[test]
fn what_the_change_took_out_can_be_quoted_and_stands_where_it_stood() {
    assert_eq!(seen(Some("src/a.rs"), quote("user.check();"), None), ("src/a.rs".into(), 2, false));
}

#[test]
fn code_has_no_headings_and_prose_has() {
    assert_eq!(seen(None, absent("Use", "deadline"), None), ("docs/b.md".into(), 3, false));
    assert!(find(&claim(None, absent("No such part", "deadline"), None)).is_err());
}

#[test]
fn an_absence_may_name_a_file_or_the_whole_change() {
    assert_eq!(seen(None, absent("src/a.rs", "overflow"), None), ("src/a.rs".into(), 1, false));
    assert!(find(&claim(None, absent("src/a.rs", "limit"), None)).unwrap_err().contains("limit"));
    assert!(find(&claim(None, absent("", "overflow"), None)).is_ok());
    // One of the files contains the term, so it is not absent.
    assert!(find(&claim(None, absent("", "limit"), None)).is_err());
}

fn settings() -> Settings {
    Settings { subject: subject(), level: Some(Level::Minimal), ..samples::settings() }
}

fn frozen() -> Reply {
    Reply::Freeze(FreezeOutcome::Frozen(FrozenSubject {
        text: DIFF.into(),
        hash: Hash::new("tree"),
        files: files(),
        remarks: vec!["a big one".into()],
    }))
}

fn landed(files: Vec<LandedFile>) -> Reply {
    let (hunks, text, hash) = (Vec::new(), String::new(), Hash::new("tree-2"));
    Reply::Land(LandOutcome::Landed(Landed { hunks, text, hash, files }))
}

fn file(path: &str, old_start: u32, text: &str) -> LandedFile {
    let hunks = vec![Hunk { old_start, old_len: 1, new_len: 1 }];
    LandedFile { path: path.into(), hunks, text: text.into() }
}

fn two_flaws() -> ScriptedWorld {
    let raised = vec![
        claim(Some("src/a.rs"), quote("fn limit() -> u32 {"), None),
        Raised { description: "too short".into(), ..claim(Some("docs/b.md"), quote("Call it."), None) },
        Raised { description: "old".into(), ..claim(Some("src/a.rs"), quote("// an old flaw"), None) },
        Raised { description: "invented".into(), ..claim(None, quote("nobody wrote this"), None) },
    ];
    ScriptedWorld::default()
        .on("round-1/freeze", frozen())
        .on("round-1/review/adversarial", findings(raised))
        .on("round-2/freeze", frozen())
        .on("round-2/review/adversarial", findings(vec![]))
        .on("end/look", frozen())
}

#[test]
fn a_finding_is_fixed_by_a_change_in_its_own_file_and_not_by_one_elsewhere() {
    let fixed = || fixes(vec![(FindingId(1), Said::Fixed), (FindingId(2), Said::Fixed)], true);
    let world = two_flaws()
        .on("round-1/fix-1/fix/1", fixed())
        .on(
            "round-1/fix-1/fix/1/land",
            landed(vec![file("src/a.rs", 2, &A.replace("limit() -> u32", "limit() -> u64"))]),
        )
        .on("round-1/fix-2/fix/1", fixed())
        .on(
            "round-1/fix-2/fix/1/land",
            landed(vec![file("docs/b.md", 5, "# Notes\n\n## Use\n\nCall it twice.\n")]),
        );
    let (ending, view, trial) = live(settings(), world);
    assert_eq!(ending.reason, Reason::GoalMet, "{ending:?}");
    let notes = |id: u32| -> Vec<String> {
        view.findings[&FindingId(id)].history.iter().map(|step| step.note.clone()).collect()
    };
    // Findings are numbered in the order of their places, and `docs/b.md` comes before `src/a.rs`.
    assert!(notes(1).iter().any(|note| note.contains("nothing near it was changed")), "{:?}", notes(1));
    assert!(!notes(2).iter().any(|note| note.contains("nothing near it was changed")), "{:?}", notes(2));
    assert_eq!(view.findings[&FindingId(3)].status, Status::Deferred { why: Deferral::PreExisting });
    assert_eq!(view.findings[&FindingId(4)].status, Status::Dismissed { why: Dismissal::Ungrounded });
    let warned = trial.journal.iter().any(|entry| entry.event == Event::Warned { text: "a big one".into() });
    assert!(warned, "what agents will not find in their copies is said");
}

#[test]
fn a_fixer_may_change_what_no_other_holds_and_make_files_beside_the_change_s() {
    let mut settings = settings();
    settings.tasks.max_issues_per_agent = 1;
    settings.tasks.max_concurrent_fixers = 2;
    let raised = (0..4).map(|number| {
        let (file, text) =
            if number % 2 == 0 { ("src/a.rs", "fn limit() -> u32 {") } else { ("docs/b.md", "Call it.") };
        Raised { description: format!("{number} is wrong with it"), ..claim(Some(file), quote(text), None) }
    });
    let world = ScriptedWorld::default()
        .on("round-1/freeze", frozen())
        .on("round-1/review/adversarial", findings(raised.collect()))
        .on("round-1/fix-1/fix/1", fixes(vec![(FindingId(1), Said::Fixed)], true))
        .on("round-1/fix-1/fix/2", fixes(vec![(FindingId(3), Said::Fixed)], true));
    let (_, _, trial) = live(settings, world);
    let allowed: Vec<Vec<String>> = trial
        .journal
        .iter()
        .filter_map(|entry| match &entry.event {
            Event::EffectStarted { effect: Effect::Land(Land { allowed, .. }), .. } => Some(allowed.clone()),
            _ => None,
        })
        .collect();
    let first: Vec<&str> = allowed[0].iter().map(String::as_str).collect();
    let expected = [["docs/b.md", "docs/", "src/"], ["src/a.rs", "docs/", "src/"]];
    assert!(
        expected.iter().any(|one| *one == *first),
        "the other file is held by the other fixer: {first:?}"
    );
}

#[test]
fn a_file_that_a_repair_made_is_under_review_from_then_on() {
    let made = LandedFile {
        path: "src/check.rs".into(),
        hunks: vec![Hunk { old_start: 1, old_len: 0, new_len: 1 }],
        text: "fn check() {}\n".into(),
    };
    let fixed = fixes(vec![(FindingId(1), Said::Fixed), (FindingId(2), Said::Fixed)], true);
    let changed = vec![file("src/a.rs", 2, "fn limit() -> u64 {\n"), file("docs/b.md", 5, "# Notes\n"), made];
    let world = two_flaws().on("round-1/fix-1/fix/1", fixed).on("round-1/fix-1/fix/1/land", landed(changed));
    let (ending, _, trial) = live(settings(), world);
    assert_eq!(ending.reason, Reason::GoalMet, "{ending:?}");
    let frozen: Vec<bool> = trial
        .journal
        .iter()
        .filter_map(|entry| match &entry.event {
            Event::EffectStarted { effect: Effect::Freeze(Freeze { subject }), .. } => {
                Some(subject.files().contains(&"src/check.rs"))
            }
            _ => None,
        })
        .collect();
    // The subject is frozen for round 1, for round 2 and for the last look.
    assert_eq!(frozen, [false, true, true]);
}

#[test]
fn what_was_taken_out_is_fixed_when_it_stands_there_again_and_not_by_a_change_elsewhere() {
    let raised = vec![claim(Some("src/a.rs"), quote("user.check();"), None)];
    let fixed = || fixes(vec![(FindingId(1), Said::Fixed)], true);
    let far = landed(vec![file("src/a.rs", 10, &A.replace("an old flaw", "a comment"))]);
    let near = landed(vec![file("src/a.rs", 2, &A.replace("    100\n", "    user.check();\n    100\n"))]);
    let world = two_flaws()
        .on("round-1/review/adversarial", findings(raised))
        .on("round-1/fix-1/fix/1", fixed())
        .on("round-1/fix-1/fix/1/land", far)
        .on("round-1/fix-2/fix/1", fixed())
        .on("round-1/fix-2/fix/1/land", near);
    let (ending, view, _) = live(settings(), world);
    assert_eq!(ending.reason, Reason::GoalMet, "{ending:?}");
    let notes: Vec<&str> =
        view.findings[&FindingId(1)].history.iter().map(|step| step.note.as_str()).collect();
    assert!(notes.iter().any(|note| note.contains("nothing near it was changed")), "{notes:?}");
}

#[test]
fn what_stood_in_a_file_that_the_change_deletes_can_be_quoted() {
    let diff = "--- a/src/auth.rs\n+++ /dev/null\n@@ -1,2 +0,0 @@\n-fn check() {}\n-fn other() {}\n";
    let files = vec![Changed { path: "src/auth.rs".into(), from: None }];
    let subject = Subject::Change(Box::new(Change { range: "x".into(), files, ..Change::default() }));
    let found =
        Scene::of(&subject, diff, &[]).unwrap().find(&claim(None, quote("fn check() {}"), None)).unwrap();
    assert_eq!((found.place.file.as_str(), found.place.line, found.pre_existing), ("src/auth.rs", 1, false));
}

#[test]
fn a_repair_that_takes_the_change_back_leaves_nothing_to_review() {
    let nothing = || {
        Reply::Freeze(FreezeOutcome::Frozen(FrozenSubject {
            text: String::new(),
            hash: Hash::new("as before"),
            files: files(),
            remarks: vec![],
        }))
    };
    let fixed = fixes(vec![(FindingId(1), Said::Fixed), (FindingId(2), Said::Fixed)], true);
    let back = landed(vec![file("src/a.rs", 2, "fn start() {}\n"), file("docs/b.md", 5, "# Notes\n")]);
    let world = two_flaws()
        .on("round-1/fix-1/fix/1", fixed)
        .on("round-1/fix-1/fix/1/land", back)
        .on("round-2/freeze", nothing())
        .on("end/look", nothing());
    let (ending, _, trial) = live(settings(), world);
    assert_eq!(ending.reason, Reason::GoalMet, "{ending:?}");
    assert!(
        !trial.world.performed.iter().any(|key| key.starts_with("round-2/review")),
        "nobody is paid for it"
    );
}
