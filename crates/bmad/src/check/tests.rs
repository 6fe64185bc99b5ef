use proptest::prelude::*;

use super::*;
use crate::{board, config, documents, layout, project_files::InMemoryFiles};

const PRD: &str = "_bmad-output/planning-artifacts/prd.md";
const ARCHITECTURE: &str = "_bmad-output/planning-artifacts/architecture.md";
const EPICS: &str = "_bmad-output/planning-artifacts/epics.md";
const READINESS: &str = "_bmad-output/planning-artifacts/implementation-readiness-report-2026-01-02.md";
const BOARD: &str = "_bmad-output/implementation-artifacts/sprint-status.yaml";
const DEFERRED: &str = "_bmad-output/implementation-artifacts/deferred-work.md";
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
fn healthy_project() -> InMemoryFiles {
    let mut files = InMemoryFiles::from_files(INSTALLED);
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
        files.insert_file(path, text);
    }
    files
}

fn check_files(files: &InMemoryFiles, step: Option<BmadStep>) -> ReadinessReport {
    let layout = layout::read_layout(files);
    let config = config::read_config(files);
    let board_path = format!("{}/{}", config.folders.implementation, board::BOARD_FILE);
    let board = files.read_file(&board_path).unwrap().map(|board_text| board::read_board(&board_path, &board_text));
    let documents = documents::find_documents(files, &config.folders);
    let check_input = CheckInput {
        project_files: files,
        layout: &layout,
        config: &config,
        board: board.as_ref(),
        board_path: &board_path,
        documents: &documents,
    };
    check_project(&check_input, step)
}

/// Renders every problem as `weight rule name:line`.
fn render_problems(report: &ReadinessReport) -> Vec<String> {
    let file_name = |path: &str| path.rsplit('/').next().unwrap_or_default().to_string();
    let line_suffix =
        |line_number: Option<usize>| line_number.map(|line_number| format!(":{line_number}")).unwrap_or_default();
    let problems = report.problems.iter();
    problems
        .map(|problem| {
            let weight_name = format!("{:?}", problem.weight).to_lowercase();
            format!("{weight_name} {} {}{}", problem.rule, file_name(&problem.path), line_suffix(problem.line))
        })
        .collect()
}

/// The healthy project with these files replaced; an empty text removes the file.
fn healthy_project_with(changes: &[(&str, &str)]) -> InMemoryFiles {
    let healthy_files = healthy_project();
    let mut files = InMemoryFiles::default();
    for path in [PRD, ARCHITECTURE, EPICS, READINESS, BOARD, LOG_IN, LOG_OUT, "src/in.rs"]
        .into_iter()
        .chain(INSTALLED.map(|(path, _)| path))
    {
        if !changes.iter().any(|(changed_path, _)| *changed_path == path) {
            files.insert_file(path, &healthy_files.read_file(path).unwrap().unwrap());
        }
    }
    changes.iter().filter(|(_, text)| !text.is_empty()).for_each(|(path, text)| files.insert_file(path, text));
    files
}

#[test]
fn a_healthy_project_has_no_problems_at_any_stage() {
    let full_report = check_files(&healthy_project(), None);
    assert_eq!(render_problems(&full_report), [""; 0]);
    assert!(full_report.ready);
    assert_eq!(
        (full_report.looked_at.documents, full_report.looked_at.stories, full_report.looked_at.on_board),
        (4, 2, Some(2))
    );
    // The project at each stage of its life: one file more each time.
    let mut files = InMemoryFiles::default();
    for path in [PRD, ARCHITECTURE, EPICS, READINESS, BOARD, LOG_IN, LOG_OUT] {
        files.insert_file(path, &healthy_project().read_file(path).unwrap().unwrap());
        files.insert_file("src/in.rs", "x");
        assert_eq!(render_problems(&check_files(&files, None)), [""; 0], "up to {path}");
    }
    assert_eq!(render_problems(&check_files(&InMemoryFiles::default(), None)), [""; 0]);
    assert!(check_files(&InMemoryFiles::default(), None).looked_at.is_empty());
}

/// The files that differ from the healthy project, and the problems that they cause.
type CheckTableRow<'a> = (&'a [(&'a str, &'a str)], &'a [&'a str]);

fn check_table(table: &[CheckTableRow<'_>]) {
    for (changes, problems) in table {
        let report = check_files(&healthy_project_with(changes), None);
        assert_eq!(render_problems(&report), *problems, "{changes:?}");
        assert_eq!(report.ready, !problems.iter().any(|problem| problem.starts_with("error")));
        assert!(report.missing.is_empty() && report.suggestion.is_none());
    }
}

#[test]
fn plans_that_disagree_are_reported_with_their_place() {
    let uncovered_prd = format!("{PRD_TEXT}- FR3: Somebody can pay.\n");
    let unknown_requirement = EPICS_TEXT.replace("FR2: Epic 1", "FR2: Epic 1\nFR9: Epic 7");
    let extra_story = format!("{EPICS_TEXT}\n### Story 1.4: Pay\n\n**Acceptance Criteria:**\n\n- paid\n");
    let renamed_story = EPICS_TEXT.replace("1.2: Log out", "1.2: Leave");
    let with_inputs = PRD_TEXT.replace("[]", "[brief.md, docs/*.md, /srv/me/x.md]");
    let unfinished_prd = PRD_TEXT.replace(", step-11-polish", ", step-04-journeys");
    check_table(&[
        (&[(PRD, &uncovered_prd)], &["warning requirement-uncovered prd.md:11"]),
        (&[(PRD, &uncovered_prd.replace("- FR3:", "- **FR3**"))], &["warning requirement-uncovered prd.md:11"]),
        (
            &[(EPICS, &unknown_requirement)],
            &["warning coverage-unknown-epic epics.md:7", "warning requirement-unknown epics.md:7"],
        ),
        (
            &[(EPICS, &extra_story)],
            &["warning story-not-on-board epics.md:24", "note story-number-missing epics.md:24"],
        ),
        (&[(EPICS, &renamed_story)], &["note story-renamed epics.md:18"]),
        (&[(PRD, &with_inputs)], &["warning input-missing prd.md:3"]),
        (&[(PRD, &unfinished_prd)], &["warning document-unfinished prd.md:2"]),
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
fn stories_that_disagree_are_reported_with_their_place() {
    check_table(&[
        (
            &[(BOARD, &BOARD_TEXT.replace("epic-1-r", "1-3-pay: backlog\n  epic-1-r"))],
            &["warning story-not-in-epics sprint-status.yaml:5"],
        ),
        (&[(BOARD, &BOARD_TEXT.replace(": review", ": done"))], &["warning story-status-not-board-s 1-1-log-in.md:3"]),
        (
            &[(BOARD, &BOARD_TEXT.replace("1-2-log-out", "1-2-leave"))],
            &["warning story-file-renamed 1-2-log-out.md", "note story-renamed epics.md:18"],
        ),
        (&[(&LOG_OUT.replace("log-out", "leave"), LOG_OUT_TEXT)], &["warning story-two-files 1-2-log-out.md"]),
        (&[(LOG_OUT, "")], &["warning story-no-file sprint-status.yaml:4"]),
        (
            &[(&LOG_OUT.replace("1-2", "2-7"), LOG_OUT_TEXT)],
            &["warning story-file-not-on-board 2-7-log-out.md", "warning story-number-differs 2-7-log-out.md:1"],
        ),
        (&[("src/in.rs", "")], &["warning story-file-list 1-1-log-in.md:15"]),
        (&[(LOG_OUT, &LOG_OUT_TEXT.replace("AC: 1", "AC: 4"))], &["warning task-unknown-criterion 1-2-log-out.md:11"]),
        (
            &[
                (LOG_OUT, &LOG_OUT_TEXT.replace("ready-for-dev", "in-progress").replace("[ ]", "[x]")),
                (BOARD, &BOARD_TEXT.replace("ready-for-dev", "in-progress")),
            ],
            &["warning story-all-ticked 1-2-log-out.md:3"],
        ),
        (
            &[(LOG_OUT, &format!("---\ndepends_on: [1.1, 9-9-x]\ncloses_deferred: D-7\n---\n{LOG_OUT_TEXT}"))],
            &["warning depends-on-unknown 1-2-log-out.md:2", "warning closes-deferred-unknown 1-2-log-out.md:3"],
        ),
        // Ids are compared as when they are closed: DW-1 is not a part of DW-12, and zeros do not count.
        (
            &[
                (LOG_OUT, &format!("---\ncloses_deferred:\n  - dw-08\n  - DW-1\n---\n{LOG_OUT_TEXT}")),
                (DEFERRED, "# Deferred Work\n\n### DW-8: A\n\nstatus: open\n\n### DW-12: B\n\nstatus: open\n"),
            ],
            &["warning closes-deferred-unknown 1-2-log-out.md:4"],
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
fn usual_projects_cause_no_alarm() {
    let unnumbered_epics = "# Shop\n\n## Epic 1: People\n\n### Story 1.1: Log in\n\n**Acceptance Criteria:**\n\n- in\n\n\
        ### Story 1.2: Log out\n\n**Acceptance Criteria:**\n\n- out\n";
    let split_stories =
        BOARD_TEXT.replace("1-2-log-out: ready-for-dev", "1-2a-log-out: backlog\n  1-2b-leave: backlog");
    let archived_board = BOARD_TEXT.replace("epic-1-r", "1-2-log-out: done\n  epic-1-r").replacen(
        "  1-2-log-out: ready-for-dev\n",
        "",
        1,
    );
    let table: &[&[(&str, &str)]] = &[
        // Epics that name no requirement.
        &[(EPICS, unnumbered_epics)],
        // A PRD that does not number its requirements.
        &[(PRD, "# Shop\n\nPeople log in and out.\n"), (ARCHITECTURE, "# A\n\nText.\n")],
        &[(PRD, &PRD_TEXT.replace("FR1", "FR-001").replace("FR2", "**FR-2**"))],
        // Requirements in other forms still belong to the PRD.
        &[(PRD, &PRD_TEXT.replace("- FR2:", "- FR2"))],
        &[(PRD, &PRD_TEXT.replace("- FR2:", "- **FR2**"))],
        &[(BOARD, &split_stories), (LOG_OUT, "")],
        &[(BOARD, &archived_board), (LOG_OUT, &LOG_OUT_TEXT.replace("ready-for-dev", "done").replace("[ ]", "[x]"))],
        // A report about a story, beside it.
        &[("_bmad-output/implementation-artifacts/1-1-log-in-validation.md", "# Validation\n\nFine.\n")],
        // A product with placeholders of its own.
        &[(ARCHITECTURE, "# A\n\nMails say `{{name}}` and {{customer}}.\n\nText.\n\nMore.\n")],
        &[(ARCHITECTURE, "# A\n\n[x](../../src/in.rs) [y](src/in.rs) [z](#a) [w](mailto:a@b.c)\n")],
    ];
    for changes in table {
        let report = check_files(&healthy_project_with(changes), None);
        assert_eq!(render_problems(&report), [""; 0], "{changes:?}");
    }
}

#[test]
fn a_step_needs_what_comes_before_it() {
    let only_installed = InMemoryFiles::from_files(INSTALLED);
    let render_needs = |files: &InMemoryFiles, step: BmadStep| {
        let report = check_files(files, Some(step));
        let missing: Vec<&str> =
            report.missing.iter().map(|missing_document| missing_document.document.as_str()).collect();
        let suggestion_text = report.suggestion.map(|suggestion| format!("{} {}", suggestion.step, suggestion.command));
        let first_step =
            suggestion_text.map(|suggestion_text| suggestion_text.lines().next().unwrap_or_default().to_string());
        format!("{} [{}] {}", report.ready, missing.join(", "), first_step.unwrap_or_default())
    };
    for (step, expected) in [
        (BmadStep::Prd, "true [] "),
        (BmadStep::QuickDev, "true [] "),
        (BmadStep::Architecture, "false [PRD] prd /bmad-bmm-create-prd"),
        (BmadStep::Epics, "false [PRD, architecture] prd /bmad-bmm-create-prd"),
        (BmadStep::SprintPlanning, "false [PRD, architecture, epics, readiness report] prd /bmad-bmm-create-prd"),
        (BmadStep::CreateStory, "false [epics, board] prd /bmad-bmm-create-prd"),
        (BmadStep::DevStory, "false [board] prd /bmad-bmm-create-prd"),
        (BmadStep::Retrospective, "false [board] prd /bmad-bmm-create-prd"),
    ] {
        assert_eq!(render_needs(&only_installed, step), expected, "{step}");
    }
    for step in [
        BmadStep::Architecture,
        BmadStep::Readiness,
        BmadStep::SprintPlanning,
        BmadStep::DevStory,
        BmadStep::CodeReview,
    ] {
        assert_eq!(render_needs(&healthy_project(), step), "true [] ", "{step}");
    }
    let backlog = BOARD_TEXT.replace("ready-for-dev", "backlog");
    for (changes, step, expected) in [
        (&[(LOG_OUT, "")][..], BmadStep::DevStory, "false [story] create-story /bmad-bmm-create-story"),
        (
            &[(BOARD, &backlog)],
            BmadStep::DevStory,
            "false [story in state ready-for-dev or in-progress] create-story /bmad-bmm-create-story",
        ),
        (&[], BmadStep::CreateStory, "false [story in state backlog] sprint-planning /bmad-bmm-sprint-planning"),
        (&[(PRD, "---\na: 1\n---\n\n")], BmadStep::Architecture, "false [PRD] prd /bmad-bmm-create-prd"),
        (
            &[(EPICS, "# E\n\n## Epic 1: People\n")],
            BmadStep::SprintPlanning,
            "false [stories] epics /bmad-bmm-create-epics-and-stories",
        ),
    ] {
        assert_eq!(render_needs(&healthy_project_with(changes), step), expected, "{changes:?}");
    }
}

#[test]
fn a_story_without_criteria_cannot_be_developed() {
    let without_criteria = healthy_project_with(&[(
        LOG_OUT,
        "# Story 1.2: Log out\n\nStatus: ready-for-dev\n\n## Tasks\n\n- [ ] Do it\n",
    )]);
    assert_eq!(render_problems(&check_files(&without_criteria, None)), ["warning story-no-criteria 1-2-log-out.md"]);
    assert_eq!(
        render_problems(&check_files(&without_criteria, Some(BmadStep::DevStory))),
        ["error story-no-criteria 1-2-log-out.md"]
    );
}

#[test]
fn the_stories_of_a_spec_match_its_files() {
    let directory = "_bmad-output/specs/spec-shop";
    let story_text = "---\nstatus: draft\n---\n# x\n";
    let files = InMemoryFiles::from_files([
        (format!("{directory}/SPEC.md").as_str(), "# Shop\n\nText.\n"),
        (
            &format!("{directory}/stories.yaml"),
            "- id: \"1\"\n  title: In\n  description: in\n- id: \"2\"\n  title: Out\n  description: out\n",
        ),
        (&format!("{directory}/stories/1-in.md"), "---\nstatus: draft\ndepends_on: [\"7\"]\n---\n# In\n"),
        (&format!("{directory}/stories/2-out.md"), story_text),
        (&format!("{directory}/stories/2-leave.md"), story_text),
        (&format!("{directory}/stories/3-pay.md"), story_text),
    ]);
    assert_eq!(
        render_problems(&check_files(&files, None)),
        [
            "error stories-file-several stories.yaml:4",
            "warning depends-on-unknown 1-in.md:3",
            "warning stories-file-unlisted 3-pay.md",
        ]
    );
}

/// The pieces that BMAD's files are made of, in any order.
const TEXT_PATTERN: &str = "(?s)([-#`\\[\\]()| \\n{}:.*]|\\.|FR1|Epic 1|Story 1\\.1|\
    ---\n|\\]\\(a\\.md#b\\)|Status: done|[a-zü0-9]){0,60}";

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// Any content of the files gives a report, and the same one twice.
    #[test]
    fn no_texts_break_it(
        texts in proptest::collection::vec((0..8_usize, TEXT_PATTERN), 0..8),
        step in proptest::option::of(0..BmadStep::ALL.len()),
    ) {
        let mut kept = healthy_project();
        let paths = [PRD, ARCHITECTURE, EPICS, READINESS, BOARD, LOG_IN, LOG_OUT, "_bmad/bmm/config.yaml"];
        for (at, text) in &texts {
            kept.insert_file(paths[*at], text);
        }
        let step = step.map(|at| BmadStep::ALL[at]);
        let report = check_files(&kept, step);
        prop_assert_eq!(&report, &check_files(&kept, step));
        let has_error = report.problems.iter().any(|problem| problem.weight == ProblemWeight::Error);
        prop_assert!(report.ready || !report.missing.is_empty() || has_error);
        prop_assert!(report.suggestion.is_none() || step.is_some());
    }
}
