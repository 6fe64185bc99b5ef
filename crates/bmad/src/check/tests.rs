use proptest::prelude::*;

use super::*;
use crate::{board, config, documents, layout, shelf::Kept};

const PRD: &str = "_bmad-output/planning-artifacts/prd.md";
const ARCHITECTURE: &str = "_bmad-output/planning-artifacts/architecture.md";
const EPICS: &str = "_bmad-output/planning-artifacts/epics.md";
const READINESS: &str = "_bmad-output/planning-artifacts/implementation-readiness-report-2026-01-02.md";
const BOARD: &str = "_bmad-output/implementation-artifacts/sprint-status.yaml";
const LOG_IN: &str = "_bmad-output/implementation-artifacts/1-1-log-in.md";
const LOG_OUT: &str = "_bmad-output/implementation-artifacts/1-2-log-out.md";

/// The files of BMAD 6.0 that the checks look at.
const INSTALLED: [(&str, &str); 16] = [
    ("_bmad/_config/manifest.yaml", "installation:\n  version: 6.0.4\nmodules:\n  - name: bmm\n"),
    ("_bmad/_config/bmad-help.csv", "module,phase\n"),
    ("_bmad/core/tasks/workflow.xml", "<x/>\n"),
    ("_bmad/bmm/config.yaml", "project_name: Shop\n"),
    ("_bmad/bmm/workflows/2-plan-workflows/create-prd/steps-c/step-01-init.md", "x\n"),
    ("_bmad/bmm/workflows/2-plan-workflows/create-prd/steps-c/step-12-complete.md", "x\n"),
    (".claude/commands/bmad-bmm-create-prd.md", "x\n"),
    (".claude/commands/bmad-bmm-create-story.md", "x\n"),
    (".claude/commands/bmad-bmm-sprint-planning.md", "x\n"),
    (".claude/commands/bmad-bmm-quick-dev.md", "x\n"),
    (".claude/commands/bmad-bmm-create-architecture.md", "x\n"),
    (".claude/commands/bmad-bmm-create-epics-and-stories.md", "x\n"),
    (".claude/commands/bmad-bmm-dev-story.md", "x\n"),
    (".claude/commands/bmad-bmm-code-review.md", "x\n"),
    (".claude/commands/bmad-bmm-retrospective.md", "x\n"),
    (".claude/commands/bmad-bmm-check-implementation-readiness.md", "x\n"),
];

const PRD_TEXT: &str = "---\nstepsCompleted: [step-01-init, step-11-polish]\ninputDocuments: []\n---\n# Shop\n\n\
    ## Functional Requirements\n\n- FR1: Somebody can log in.\n- FR2: Somebody can log out.\n";
const EPICS_TEXT: &str = "# Shop\n\n### FR Coverage Map\n\nFR1: Epic 1\nFR2: Epic 1\n\n## Epic 1: People\n\nPeople come in.\n\n\
    ### Story 1.1: Log in\n\n**Acceptance Criteria:**\n\n**Given** a name **Then** it opens\n\n\
    ### Story 1.2: Log out\n\n**Acceptance Criteria:**\n\n**Given** a person **Then** it closes\n";
const BOARD_TEXT: &str = "development_status:\n  epic-1: in-progress\n  1-1-log-in: review\n  1-2-log-out: ready-for-dev\n  \
    epic-1-retrospective: optional\n";
const LOG_IN_TEXT: &str = "# Story 1.1: Log in\n\nStatus: review\n\n## Acceptance Criteria\n\n1. It opens.\n\n## Tasks / Subtasks\n\n\
    - [x] Do it (AC: 1)\n\n### File List\n\n- src/in.rs\n- src/old.rs (deleted)\n";
const LOG_OUT_TEXT: &str = "# Story 1.2: Log out\n\nStatus: ready-for-dev\n\n## Acceptance Criteria\n\n1. It closes.\n\n\
    ## Tasks / Subtasks\n\n- [ ] Do it (AC: 1)\n";

/// A project without any problem.
fn healthy() -> Kept {
    let mut kept = Kept::with(INSTALLED);
    for (path, text) in [
        (PRD, PRD_TEXT),
        (ARCHITECTURE, "# Shop\n\nMade from [the PRD](prd.md#functional-requirements).\n"),
        (EPICS, EPICS_TEXT),
        (READINESS, "# Readiness\n\n### Overall Readiness Status\n\nREADY\n"),
        (BOARD, BOARD_TEXT),
        (LOG_IN, LOG_IN_TEXT),
        (LOG_OUT, LOG_OUT_TEXT),
        ("src/in.rs", "fn main() {}\n"),
    ] {
        kept.put(path, text);
    }
    kept
}

fn checked(kept: &Kept, step: Option<Step>) -> Report {
    let layout = layout::read(kept);
    let config = config::read(kept);
    let path = format!("{}/{}", config.folders.implementation, board::FILE);
    let board = kept.read(&path).unwrap().map(|text| board::read(&path, &text));
    let documents = documents::find(kept, &config.folders);
    let input = Input {
        shelf: kept,
        layout: &layout,
        config: &config,
        board: board.as_ref(),
        board_path: &path,
        documents: &documents,
    };
    run(&input, step)
}

/// Renders every problem as `weight rule name:line`.
fn said(report: &Report) -> Vec<String> {
    let name = |path: &str| path.rsplit('/').next().unwrap_or_default().to_string();
    let line = |line: Option<usize>| line.map(|line| format!(":{line}")).unwrap_or_default();
    let all = report.problems.iter();
    all.map(|problem| {
        let weight = format!("{:?}", problem.weight).to_lowercase();
        format!("{weight} {} {}{}", problem.rule, name(&problem.path), line(problem.line))
    })
    .collect()
}

/// The healthy project with these files replaced; an empty text removes the file.
fn with(changes: &[(&str, &str)]) -> Kept {
    let all = healthy();
    let mut kept = Kept::default();
    for path in [PRD, ARCHITECTURE, EPICS, READINESS, BOARD, LOG_IN, LOG_OUT, "src/in.rs"]
        .into_iter()
        .chain(INSTALLED.map(|(path, _)| path))
    {
        if !changes.iter().any(|(changed, _)| *changed == path) {
            kept.put(path, &all.read(path).unwrap().unwrap());
        }
    }
    changes.iter().filter(|(_, text)| !text.is_empty()).for_each(|(path, text)| kept.put(path, text));
    kept
}

#[test]
fn a_healthy_project_has_nothing_wrong_at_any_time_of_its_life() {
    let whole = checked(&healthy(), None);
    assert_eq!(said(&whole), [""; 0]);
    assert!(whole.ready);
    assert_eq!(
        (whole.looked_at.documents, whole.looked_at.stories, whole.looked_at.on_board),
        (4, 2, Some(2))
    );
    // The project at each stage of its life: one file more each time.
    let mut kept = Kept::default();
    for path in [PRD, ARCHITECTURE, EPICS, READINESS, BOARD, LOG_IN, LOG_OUT] {
        kept.put(path, &healthy().read(path).unwrap().unwrap());
        kept.put("src/in.rs", "x");
        assert_eq!(said(&checked(&kept, None)), [""; 0], "up to {path}");
    }
    assert_eq!(said(&checked(&Kept::default(), None)), [""; 0]);
    assert!(checked(&Kept::default(), None).looked_at.is_nothing());
}

/// The files that differ from the healthy project, and the problems that they cause.
type Row<'a> = (&'a [(&'a str, &'a str)], &'a [&'a str]);

fn hold(table: &[Row<'_>]) {
    for (changes, problems) in table {
        let report = checked(&with(changes), None);
        assert_eq!(said(&report), *problems, "{changes:?}");
        assert_eq!(report.ready, !problems.iter().any(|problem| problem.starts_with("error")));
        assert!(report.missing.is_empty() && report.suggestion.is_none());
    }
}

#[test]
fn plans_that_do_not_fit_together_are_said_with_their_place() {
    let unbuilt = format!("{PRD_TEXT}- FR3: Somebody can pay.\n");
    let unasked = EPICS_TEXT.replace("FR2: Epic 1", "FR2: Epic 1\nFR9: Epic 7");
    let third = format!("{EPICS_TEXT}\n### Story 1.4: Pay\n\n**Acceptance Criteria:**\n\n- paid\n");
    let renamed = EPICS_TEXT.replace("1.2: Log out", "1.2: Leave");
    let inputs = PRD_TEXT.replace("[]", "[brief.md, docs/*.md, /srv/me/x.md]");
    let begun = PRD_TEXT.replace(", step-11-polish", ", step-04-journeys");
    hold(&[
        (&[(PRD, &unbuilt)], &["warning requirement-uncovered prd.md:11"]),
        (&[(PRD, &unbuilt.replace("- FR3:", "- **FR3**"))], &["warning requirement-uncovered prd.md:11"]),
        (
            &[(EPICS, &unasked)],
            &["warning coverage-unknown-epic epics.md:7", "warning requirement-unknown epics.md:7"],
        ),
        (
            &[(EPICS, &third)],
            &["warning story-not-on-board epics.md:24", "note story-number-missing epics.md:24"],
        ),
        (&[(EPICS, &renamed)], &["note story-renamed epics.md:18"]),
        (&[(PRD, &inputs)], &["warning input-missing prd.md:3"]),
        (&[(PRD, &begun)], &["warning document-unfinished prd.md:2"]),
        (
            &[(PRD, "---\nstepsCompleted: []\n---\n# PRD - {{project_name}}\n\n**Date:** {{date}}\n")],
            &["note link-anchor-missing architecture.md:3", "warning document-template prd.md:1"],
        ),
        (
            &[(ARCHITECTURE, "# A\n\n[x](gone.md) `[y](no.md)` [z](prd.md#nowhere) [w](https://x.y/z.md)\n")],
            &["warning link-missing architecture.md:3", "note link-anchor-missing architecture.md:3"],
        ),
    ]);
}

#[test]
fn stories_that_do_not_fit_together_are_said_with_their_place() {
    hold(&[
        (
            &[(BOARD, &BOARD_TEXT.replace("epic-1-r", "1-3-pay: backlog\n  epic-1-r"))],
            &["warning story-not-in-epics sprint-status.yaml:5"],
        ),
        (
            &[(BOARD, &BOARD_TEXT.replace(": review", ": done"))],
            &["warning story-status-not-board-s 1-1-log-in.md:3"],
        ),
        (
            &[(BOARD, &BOARD_TEXT.replace("1-2-log-out", "1-2-leave"))],
            &["warning story-file-renamed 1-2-log-out.md", "note story-renamed epics.md:18"],
        ),
        (
            &[(&LOG_OUT.replace("log-out", "leave"), LOG_OUT_TEXT)],
            &["warning story-two-files 1-2-log-out.md"],
        ),
        (&[(LOG_OUT, "")], &["warning story-no-file sprint-status.yaml:4"]),
        (
            &[(&LOG_OUT.replace("1-2", "2-7"), LOG_OUT_TEXT)],
            &[
                "warning story-file-not-on-board 2-7-log-out.md",
                "warning story-number-differs 2-7-log-out.md:1",
            ],
        ),
        (&[("src/in.rs", "")], &["warning story-file-list 1-1-log-in.md:15"]),
        (
            &[(LOG_OUT, &LOG_OUT_TEXT.replace("AC: 1", "AC: 4"))],
            &["warning task-unknown-criterion 1-2-log-out.md:11"],
        ),
        (
            &[
                (LOG_OUT, &LOG_OUT_TEXT.replace("ready-for-dev", "in-progress").replace("[ ]", "[x]")),
                (BOARD, &BOARD_TEXT.replace("ready-for-dev", "in-progress")),
            ],
            &["warning story-all-ticked 1-2-log-out.md:3"],
        ),
        (
            &[(
                LOG_OUT,
                &format!("---\ndepends_on: [1.1, 9-9-x]\ncloses_deferred: D-7\n---\n{LOG_OUT_TEXT}"),
            )],
            &[
                "warning depends-on-unknown 1-2-log-out.md:2",
                "warning closes-deferred-unknown 1-2-log-out.md:3",
            ],
        ),
        (
            &[(READINESS, "# R\n\n### Overall Readiness Status\n\nNOT READY\n")],
            &["warning readiness-not-ready implementation-readiness-report-2026-01-02.md:5"],
        ),
        (
            &[(READINESS, "# R\n\n### Overall Readiness Status\n\nNOT READY\n"), (BOARD, "")],
            &["error readiness-not-ready implementation-readiness-report-2026-01-02.md:5"],
        ),
        (
            &[(READINESS, "# R\n\n**Gate:** CONCERNS\n")],
            &["warning readiness-needs-work implementation-readiness-report-2026-01-02.md:3"],
        ),
    ]);
}

#[test]
fn what_real_projects_do_is_no_alarm() {
    let words = "# Shop\n\n## Epic 1: People\n\n### Story 1.1: Log in\n\n**Acceptance Criteria:**\n\n- in\n\n\
        ### Story 1.2: Log out\n\n**Acceptance Criteria:**\n\n- out\n";
    let split =
        BOARD_TEXT.replace("1-2-log-out: ready-for-dev", "1-2a-log-out: backlog\n  1-2b-leave: backlog");
    let archived = BOARD_TEXT.replace("epic-1-r", "1-2-log-out: done\n  epic-1-r").replacen(
        "  1-2-log-out: ready-for-dev\n",
        "",
        1,
    );
    let table: &[&[(&str, &str)]] = &[
        // Epics that name no requirement.
        &[(EPICS, words)],
        // A PRD that does not number its requirements.
        &[(PRD, "# Shop\n\nPeople log in and out.\n"), (ARCHITECTURE, "# A\n\nText.\n")],
        &[(PRD, &PRD_TEXT.replace("FR1", "FR-001").replace("FR2", "**FR-2**"))],
        // Requirements in other forms still belong to the PRD.
        &[(PRD, &PRD_TEXT.replace("- FR2:", "- FR2"))],
        &[(PRD, &PRD_TEXT.replace("- FR2:", "- **FR2**"))],
        &[(BOARD, &split), (LOG_OUT, "")],
        &[
            (BOARD, &archived),
            (LOG_OUT, &LOG_OUT_TEXT.replace("ready-for-dev", "done").replace("[ ]", "[x]")),
        ],
        // A report about a story, beside it.
        &[("_bmad-output/implementation-artifacts/1-1-log-in-validation.md", "# Validation\n\nFine.\n")],
        // A product with placeholders of its own.
        &[(ARCHITECTURE, "# A\n\nMails say `{{name}}` and {{customer}}.\n\nText.\n\nMore.\n")],
        &[(ARCHITECTURE, "# A\n\n[x](../../src/in.rs) [y](src/in.rs) [z](#a) [w](mailto:a@b.c)\n")],
    ];
    for changes in table {
        let report = checked(&with(changes), None);
        assert_eq!(said(&report), [""; 0], "{changes:?}");
    }
}

#[test]
fn a_step_needs_what_comes_before_it() {
    let bare = Kept::with(INSTALLED);
    let drawn = |kept: &Kept, step: Step| {
        let report = checked(kept, Some(step));
        let missing: Vec<&str> = report.missing.iter().map(|missing| missing.document.as_str()).collect();
        let first = report.suggestion.map(|suggestion| format!("{} {}", suggestion.step, suggestion.command));
        let first = first.map(|first| first.lines().next().unwrap_or_default().to_string());
        format!("{} [{}] {}", report.ready, missing.join(", "), first.unwrap_or_default())
    };
    for (step, said) in [
        (Step::Prd, "true [] "),
        (Step::QuickDev, "true [] "),
        (Step::Architecture, "false [PRD] prd /bmad-bmm-create-prd"),
        (Step::Epics, "false [PRD, architecture] prd /bmad-bmm-create-prd"),
        (Step::SprintPlanning, "false [PRD, architecture, epics, readiness report] prd /bmad-bmm-create-prd"),
        (Step::CreateStory, "false [epics, board] prd /bmad-bmm-create-prd"),
        (Step::DevStory, "false [board] prd /bmad-bmm-create-prd"),
        (Step::Retrospective, "false [board] prd /bmad-bmm-create-prd"),
    ] {
        assert_eq!(drawn(&bare, step), said, "{step}");
    }
    for step in [Step::Architecture, Step::Readiness, Step::SprintPlanning, Step::DevStory, Step::CodeReview]
    {
        assert_eq!(drawn(&healthy(), step), "true [] ", "{step}");
    }
    let backlog = BOARD_TEXT.replace("ready-for-dev", "backlog");
    for (changes, step, said) in [
        (&[(LOG_OUT, "")][..], Step::DevStory, "false [story] create-story /bmad-bmm-create-story"),
        (
            &[(BOARD, &backlog)],
            Step::DevStory,
            "false [story at ready-for-dev or in-progress] create-story /bmad-bmm-create-story",
        ),
        (&[], Step::CreateStory, "false [story at backlog] sprint-planning /bmad-bmm-sprint-planning"),
        (&[(PRD, "---\na: 1\n---\n\n")], Step::Architecture, "false [PRD] prd /bmad-bmm-create-prd"),
        (
            &[(EPICS, "# E\n\n## Epic 1: People\n")],
            Step::SprintPlanning,
            "false [stories] epics /bmad-bmm-create-epics-and-stories",
        ),
    ] {
        assert_eq!(drawn(&with(changes), step), said, "{changes:?}");
    }
}

#[test]
fn a_story_without_criteria_cannot_be_developed() {
    let bare =
        with(&[(LOG_OUT, "# Story 1.2: Log out\n\nStatus: ready-for-dev\n\n## Tasks\n\n- [ ] Do it\n")]);
    assert_eq!(said(&checked(&bare, None)), ["warning story-no-criteria 1-2-log-out.md"]);
    assert_eq!(said(&checked(&bare, Some(Step::DevStory))), ["error story-no-criteria 1-2-log-out.md"]);
}

#[test]
fn the_stories_of_a_spec_are_those_of_its_files() {
    let folder = "_bmad-output/specs/spec-shop";
    let file = "---\nstatus: draft\n---\n# x\n";
    let kept = Kept::with([
        (format!("{folder}/SPEC.md").as_str(), "# Shop\n\nText.\n"),
        (
            &format!("{folder}/stories.yaml"),
            "- id: \"1\"\n  title: In\n  description: in\n- id: \"2\"\n  title: Out\n  description: out\n",
        ),
        (&format!("{folder}/stories/1-in.md"), "---\nstatus: draft\ndepends_on: [\"7\"]\n---\n# In\n"),
        (&format!("{folder}/stories/2-out.md"), file),
        (&format!("{folder}/stories/2-leave.md"), file),
        (&format!("{folder}/stories/3-pay.md"), file),
    ]);
    assert_eq!(
        said(&checked(&kept, None)),
        [
            "error stories-file-several stories.yaml:4",
            "warning depends-on-unknown 1-in.md:3",
            "warning stories-file-unlisted 3-pay.md",
        ]
    );
}

/// The pieces that BMAD's files are made of, in any order.
const TEXT: &str = "(?s)([-#`\\[\\]()| \\n{}:.*]|\\.|FR1|Epic 1|Story 1\\.1|\
    ---\n|\\]\\(a\\.md#b\\)|Status: done|[a-zü0-9]){0,60}";

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// Any content of the files gives a report, and the same one twice.
    #[test]
    fn no_texts_break_it(
        texts in proptest::collection::vec((0..8_usize, TEXT), 0..8),
        step in proptest::option::of(0..Step::ALL.len()),
    ) {
        let mut kept = healthy();
        let paths = [PRD, ARCHITECTURE, EPICS, READINESS, BOARD, LOG_IN, LOG_OUT, "_bmad/bmm/config.yaml"];
        for (at, text) in &texts {
            kept.put(paths[*at], text);
        }
        let step = step.map(|at| Step::ALL[at]);
        let report = checked(&kept, step);
        prop_assert_eq!(&report, &checked(&kept, step));
        prop_assert!(report.ready || !report.missing.is_empty() || report.problems.iter().any(|problem| problem.weight == Weight::Error));
        prop_assert!(report.suggestion.is_none() || step.is_some());
    }
}
