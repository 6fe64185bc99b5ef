//! Epics in the form of BMAD's template and of its sharding tool.

use proptest::prelude::*;

use super::*;

fn render_epics(epic_files: &[(&str, &str)]) -> String {
    let EpicsDocument { epics, requirements, coverage, problems } = read_epics(epic_files);
    let mut rendered = Vec::new();
    for epic in &epics {
        let listed_note = if epic.only_listed { " only listed" } else { "" };
        let Epic { number, title, path, line, goal, requirements, .. } = epic;
        rendered.push(format!("epic {number} {title:?} {path}:{line} {goal:?} {requirements:?}{listed_note}"));
        for story in &epic.stories {
            let EpicStory { number, key, title, line, criteria, requirements, .. } = story;
            rendered.push(format!("  {number} {title:?} {key} ({line}) {criteria:?} {requirements:?}"));
        }
    }
    requirements.iter().for_each(|requirement| {
        rendered.push(format!("{} {:?} ({})", requirement.id, requirement.text, requirement.line))
    });
    coverage.iter().for_each(|coverage_entry| {
        rendered.push(format!("{} -> {:?} ({})", coverage_entry.requirement, coverage_entry.epics, coverage_entry.line))
    });
    problems.iter().for_each(|problem| rendered.push(format!("{:?} {} {problem}", problem.weight, problem.rule)));
    rendered.join("\n")
}

#[test]
fn one_file_in_the_form_of_the_template_is_read() {
    let epics_text = "---\nstepsCompleted: [1, 2]\n---\n# Shop - Epic Breakdown\n\n## Overview\n\n## Requirements Inventory\n\n\
                ### Functional Requirements\n\nFR1: people log in\n- **FR-2:** people pay\n\n### NonFunctional Requirements\n\n\
                NFR1: fast\n\n### FR Coverage Map\n\nFR1: Epic 1 - see 7 things\n| FR2 | Epics 1 and 2 |\n\n## Epic List\n\n\
                ### Epic 1: In\nPeople get in.\n**FRs covered:** FR1, FR2\n\n### Epic 3: Later\nNot yet.\n\n\
                ## Epic 1: Getting in\n\n**Goal:** all get in\n\n### Story 1.1: Sign up & SSO (OAuth2)\n\n\
                As a user, for FR1 and NFR1,\n\n**Acceptance Criteria:**\n\n<!-- each -->\n\n**Given** a form\n**When** it is sent\n\
                **Then** I am in\n\n**Given** none\n**Then** nothing\n\n**Technical Notes:**\n- no criterion\n\n\
                ### story 1.2a - Out\n#### Acceptance Criteria\n1. a\n2. b\n\n## Epic 2: Paying\n### Story 2.1: Pay (FR2)\n";
    insta::assert_snapshot!(render_epics(&[("epics.md", epics_text)]));
}

#[test]
fn a_folder_of_parts_is_read() {
    let index_text = "# Shop - Epic Breakdown\n\n- [Epic 1](./epic-1.md)\n";
    let epic_list = "# Epic List\n\n## Epic 1: In\n**FRs covered:** FR1-FR3\n";
    let first_epic = "# Epic 1: In\n\nGoal.\n\n## Story 1.1: A\n\n**Acceptance Criteria:**\n- x\n";
    let second_epic = "# Epic 2: Out\n\n## Story 2.1: B\n";
    let epic_files = [
        ("epics/index.md", index_text),
        ("epics/epic-list.md", epic_list),
        ("epics/epic-1.md", first_epic),
        ("epics/epic-2.md", second_epic),
    ];
    insta::assert_snapshot!(render_epics(&epic_files));
}

#[test]
fn every_oddity_is_reported_with_its_line() {
    let epics_text = "## Epic 1: A\n### Story 1.1: X\n### Story 1.1: X\n### Story 1.1: Y\n### Story 1.4: Z\n### Story 2.1: Q\n\
                ## Epic 1: B\n## Epic 4: C\n```\n## Epic 9: no\n```\n## Epic {{N}}: {{title}}\n### Story 7: no\n##### Story 1.9: deep\n\
                ## Epic List\n## Epics\n### Story points\n### Story 4.1:\n##Epic 5 Tight\n";
    insta::assert_snapshot!(render_epics(&[("e.md", epics_text)]), @r######"
    epic 1 "A" e.md:1 "" []
      1.1 "X" 1-1-x (2) [] []
      1.1 "Y" 1-1-y (4) [] []
      1.4 "Z" 1-4-z (5) [] []
    epic 2 "" e.md:6 "" []
      2.1 "Q" 2-1-q (6) [] []
    epic 4 "C" e.md:8 "" []
      4.1 "" 4-1 (18) [] []
    epic 5 "Tight" e.md:19 "" []
    Warning story-elsewhere e.md:6: story 2.1 is listed under epic 1
    Warning epic-twice e.md:7: duplicate epic 1 (first at e.md:1)
    Warning epics-heading-unread e.md:12: heading "## Epic {{N}}: {{title}}" is neither an epic nor a story
    Warning epics-heading-unread e.md:13: heading "### Story 7: no" is neither an epic nor a story
    Warning epics-heading-unread e.md:14: heading "##### Story 1.9: deep" is neither an epic nor a story
    Warning story-no-title e.md:18: story 4.1 has no title
    Warning story-twice e.md:4: duplicate story 1.1 (first at e.md:2)
    Warning story-number-missing e.md:5: gap in the story numbers: story 1.1 is followed by story 1.4
    Warning epic-missing e.md:6: story 2.1 belongs to epic 2, which has no heading
    Warning epic-number-missing e.md:8: gap in the epic numbers: epic 2 is followed by epic 4
    Warning epic-empty e.md:19: epic 5 has no stories
    "######);
}

#[test]
fn ids_are_found_in_every_spelling() {
    for (epics_text, expected) in [
        ("FR1, FR2 and NFR3", "FR1 FR2 NFR3"),
        ("FR-1 (FR-2)", "FR1 FR2"),
        ("FR1-FR4", "FR1 FR2 FR3 FR4"),
        ("FR1–3, FR9", "FR1 FR2 FR3 FR9"),
        ("NFR1 to NFR3", "NFR1 NFR2 NFR3"),
        ("FR1 goes to FR3", "FR1 FR3"),
        ("UX-DR4 CAP-1", "UX-DR4 CAP1"),
        ("xFR1 FR1x FRONT FR", ""),
        ("FR1-99999999999 FR4294967295", "FR1 FR4294967295"),
    ] {
        assert_eq!(find_requirement_ids(epics_text).join(" "), expected, "{epics_text}");
    }
    let prd = "#### FR-1: Log in\ntext FR9\n- FR2: pay\nFR3 says nothing\n| FR4 | x |\n";
    let inventory_lines: Vec<String> = read_inventory("prd.md", prd)
        .into_iter()
        .map(|requirement| format!("{} {}", requirement.id, requirement.text))
        .collect();
    assert_eq!(inventory_lines, ["FR1 Log in", "FR2 pay", "FR4 x"]);
}

#[test]
fn the_highest_numbers_are_read_like_others() {
    let epics_text = "## Epic 4294967295: A\n### Story 4294967295.4294967295: a\n### Story 4294967295.4294967295: b\n\
                ### Story 4294967295.4294967295c: c\n";
    let epics_document = read_epics(&[("a.md", epics_text), ("b.md", epics_text)]);
    let missing_count = epics_document.problems.iter().filter(|problem| problem.rule == "story-number-missing").count();
    assert_eq!((epics_document.epics.len(), missing_count), (1, 1));
}

#[test]
fn ten_megabytes_are_read_in_one_pass() {
    let stories: String =
        (1..40_000).map(|number| format!("### Story 1.{number}: Title {number}\n- FR{number}\n")).collect();
    let coverage_map = format!("### FR Coverage Map\nFR1: {}\n", "Epic 1, epic ".repeat(100_000));
    let epics_text =
        format!("## Requirements Inventory\n{coverage_map}## Epic 1: A\n{stories}{}", "FR1-FR99 ".repeat(100_000));
    assert_eq!(read_epics(&[("e.md", &epics_text)]).epics[0].stories.len(), 39_999);
}

proptest! {
    #[test]
    fn any_text_is_read_without_falling_over(
        text in "(?s)(\u{feff})?([-#:.|{}*\r\n é]|Epic |Story |1|2\\.|FR1|-FR3|## |### |```\n|Acceptance Criteria\n\
            |FR Coverage Map\n|Requirements Inventory\n){0,60}"
    ) {
        let _ = read_epics(&[("a.md", &text), ("b.md", &text)]);
        let _ = read_inventory("a.md", &text);
    }
}
