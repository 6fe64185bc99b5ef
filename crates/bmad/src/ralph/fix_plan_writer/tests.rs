use proptest::prelude::*;

use super::*;
use crate::{epic_id::EpicId, keys::StoryKey, states::StoryStatus};

fn story(key_text: &str, title: &str, criteria: &[&str]) -> FixPlanStory {
    FixPlanStory {
        key: StoryKey::parse(key_text).unwrap(),
        title: title.into(),
        criteria: criteria.iter().map(ToString::to_string).collect(),
        story_file: None,
        state: None,
    }
}

fn with_status(status: StoryStatus, story: FixPlanStory) -> FixPlanStory {
    FixPlanStory { state: Some(BoardEntryState::Story(status)), ..story }
}

fn epic(number: u32, title: &str, stories: &[FixPlanStory]) -> FixPlanEpic {
    FixPlanEpic { id: Some(EpicId::from(number)), title: title.into(), stories: stories.to_vec() }
}

fn sample_epics() -> Vec<FixPlanEpic> {
    let sign_up = with_status(StoryStatus::Done, story("1-1-sign-up", "Sign up", &["An account is made."]));
    let log_in = FixPlanStory {
        story_file: Some("stories/1-2-log-in.md".into()),
        ..with_status(StoryStatus::InProgress, story("1-2-log-in", "Log in", &["In with a password."]))
    };
    vec![
        epic(1, "Accounts", &[sign_up, log_in]),
        epic(2, "Reports", &[story("2-1-export", "Export", &["Given data\nWhen exported", "A file is there."])]),
    ]
}

/// Writes a plan and checks that writing it again changes nothing.
fn write_plan(old_text: &str, epics: &[FixPlanEpic]) -> WrittenFixPlan {
    let written = write_fix_plan(old_text, epics, "p.md").unwrap();
    let again = write_fix_plan(&written.text, epics, "p.md").unwrap();
    assert_eq!(again.text, written.text);
    assert_eq!((again.changes.new, again.changes.changed), (Vec::new(), Vec::new()));
    written
}

/// The plan without the fingerprints.
fn without_fingerprints(plan_text: &str) -> String {
    let mask_line = |line: &str| match line.split_once("<!-- story ") {
        Some((before_mark, mark)) => {
            let words: Vec<&str> =
                mark.split(' ').enumerate().filter(|(index, _)| *index != 1).map(|(_, word)| word).collect();
            format!("{before_mark}<!-- story {}", words.join(" "))
        }
        None => line.to_string(),
    };
    plan_text.split_inclusive('\n').map(mask_line).collect()
}

fn changed_parts(written: &WrittenFixPlan) -> Vec<String> {
    written.changes.changed.iter().map(|story| format!("{}: {}", story.story, story.describe_parts())).collect()
}

#[test]
fn a_new_plan_has_a_section_for_each_epic_and_a_box_for_each_story() {
    let written = write_plan("", &sample_epics());
    assert_eq!(
        without_fingerprints(&written.text),
        "# Fix plan\n\nA ticked box means that the story is implemented and tested. `tribunal loop plan` adds new stories and \
         keeps everything else.\n\n\
         ## Epic 1: Accounts\n\n\
         - [x] Story 1.1: Sign up <!-- story 1-1 counted -->\n  Acceptance criteria: An account is made.\n\
         - [ ] Story 1.2: Log in <!-- story 1-2 -->\n  Story file: stories/1-2-log-in.md\n\n\
         ## Epic 2: Reports\n\n\
         - [ ] Story 2.1: Export <!-- story 2-1 -->\n  Acceptance criteria: Given data When exported; A file is there.\n"
    );
    assert_eq!(written.changes.new, ["1-1", "1-2", "2-1"]);
    assert_eq!((written.changes.done, written.changes.open), (1, 2));
}

#[test]
fn ticks_are_kept_and_a_story_that_is_done_on_the_board_is_ticked() {
    let mut epics = sample_epics();
    let first_text = write_plan("", &epics).text;
    let ticked_text = first_text.replace("- [ ] Story 1.2: Log in", "- [X] Story 1.2: Log in (see abc123)");
    epics[1].stories[0].state = Some(BoardEntryState::Story(StoryStatus::Done));
    let written = write_plan(&ticked_text, &epics);
    assert!(written.text.contains("- [X] Story 1.2: Log in (see abc123) <!-- story 1-2 "), "{}", written.text);
    assert!(written.text.contains("- [x] Story 2.1: Export <!-- story 2-1 "), "{}", written.text);
    assert_eq!((written.changes.done, written.changes.open), (3, 0));
    assert_eq!(changed_parts(&written), Vec::<String>::new());
    // The user wants it to be done again. A story that is done on the board stays ticked.
    let unticked_text =
        written.text.replace("- [X] Story 1.2", "- [ ] Story 1.2").replace("- [x] Story 2.1", "- [ ] Story 2.1");
    let written = write_plan(&unticked_text, &epics);
    assert!(written.text.contains("- [ ] Story 1.2: Log in (see abc123) <!-- story 1-2 "), "{}", written.text);
    assert_eq!((written.changes.done, written.changes.open), (2, 1));
}

#[test]
fn changed_stories_are_named_with_what_has_changed() {
    let mut epics = sample_epics();
    let first_text = write_plan("", &epics).text;
    epics[0].stories[0].title = "Sign  up".into();
    epics[0].stories[1].criteria.push("Out without one.".into());
    epics[1].stories[0].title = "Export all".into();
    let written = write_plan(&first_text, &epics);
    assert_eq!(changed_parts(&written), ["1-2: the acceptance criteria", "2-1: the title"]);
    assert!(written.text.contains("- [ ] Story 2.1: Export all <!-- story 2-1 "), "{}", written.text);
    epics[0].stories[0].title = "Register".into();
    epics[0].stories[0].criteria.clear();
    let written = write_plan(&written.text, &epics);
    assert_eq!(changed_parts(&written), ["1-1: the title and the acceptance criteria"]);
    assert!(written.changes.changed[0].done);
    assert!(!written.text.contains("An account is made."), "{}", written.text);
}

#[test]
fn a_story_file_that_appears_is_no_change_of_the_story() {
    let mut epics = sample_epics();
    let first_text = write_plan("", &epics).text;
    epics[1].stories[0].story_file = Some("stories/2-1-export.md".into());
    let written = write_plan(&first_text, &epics);
    assert_eq!(changed_parts(&written), Vec::<String>::new());
    assert!(written.text.ends_with(" -->\n  Story file: stories/2-1-export.md\n"), "{}", written.text);
}

#[test]
fn lines_of_the_user_are_kept_as_they_are() {
    let own_plan = "Notes at the top.\n\n## First of all\n- [ ] buy milk\n* [x]  Story 1.2 needs a better name\n\n\
        ```\n- [ ] Story 1.1: Sign up\n```\n## epic 1 - Accounts\nWhy this epic matters.\n\n## Later\n- [ ] sell milk";
    let written = write_plan(own_plan, &sample_epics());
    assert_eq!(
        without_fingerprints(&written.text),
        "Notes at the top.\n\n## First of all\n- [ ] buy milk\n* [x]  Story 1.2 needs a better name\n\n\
         ```\n- [ ] Story 1.1: Sign up\n```\n## epic 1 - Accounts\nWhy this epic matters.\n\n\
         - [x] Story 1.1: Sign up <!-- story 1-1 counted -->\n  Acceptance criteria: An account is made.\n\
         - [ ] Story 1.2: Log in <!-- story 1-2 -->\n  Story file: stories/1-2-log-in.md\n\n\
         ## Epic 2: Reports\n\n\
         - [ ] Story 2.1: Export <!-- story 2-1 -->\n  Acceptance criteria: Given data When exported; A file is there.\n\n\
         ## Later\n- [ ] sell milk\n"
    );
    // Notes below an item, items that were moved, and a line without a newline at the end stay, too.
    let plan_text =
        written.text.replace("log-in.md\n", "log-in.md\n  - [ ] ask Ann\n\n  She knows.\n").trim_end().to_string();
    assert_eq!(write_plan(&plan_text, &sample_epics()).text, plan_text);
}

#[test]
fn new_stories_and_epics_are_put_beside_their_neighbours() {
    let mut epics = sample_epics();
    let plan_text = write_plan("", &epics).text.replace("log-in.md\n", "log-in.md\n  - [ ] ask Ann\n");
    epics[0].stories.insert(0, story("1-0-plan", "Plan", &[]));
    epics[0].stories.push(story("1-3-log-out", "Log out", &[]));
    epics.insert(
        0,
        FixPlanEpic { id: EpicId::parse("0"), title: String::new(), stories: vec![story("0-1-a", "A", &[])] },
    );
    epics.push(FixPlanEpic { id: None, title: String::new(), stories: vec![story("CORE-1", "Core", &[])] });
    let written = write_plan(&plan_text, &epics);
    let lines = without_fingerprints(&written.text);
    let outline: Vec<&str> =
        lines.lines().filter(|line| line.starts_with(['#', '-']) || line.contains("Ann")).collect();
    assert_eq!(
        outline,
        [
            "# Fix plan",
            "## Epic 0",
            "- [ ] Story 0.1: A <!-- story 0-1 -->",
            "## Epic 1: Accounts",
            "- [ ] Story 1.0: Plan <!-- story 1-0 -->",
            "- [x] Story 1.1: Sign up <!-- story 1-1 counted -->",
            "- [ ] Story 1.2: Log in <!-- story 1-2 -->",
            "  - [ ] ask Ann",
            "- [ ] Story 1.3: Log out <!-- story 1-3 -->",
            "## Epic 2: Reports",
            "- [ ] Story 2.1: Export <!-- story 2-1 -->",
            "## Other stories",
            "- [ ] Story CORE-1: Core <!-- story core-1 -->",
        ]
    );
    assert!(!written.text.contains("\n\n\n"), "{}", written.text);
    assert_eq!(written.changes.new, ["0-1", "1-0", "1-3", "core-1"]);
}

#[test]
fn line_endings_stay_as_they_are() {
    let windows_text = write_plan("", &sample_epics()[..1]).text.replace('\n', "\r\n");
    assert_eq!(write_plan(&windows_text, &sample_epics()[..1]).text, windows_text);
    let written = write_plan(&windows_text, &sample_epics());
    assert!(written.text.starts_with(&windows_text), "{}", written.text);
    assert_eq!(written.text.matches('\n').count(), written.text.matches("\r\n").count());
    assert_eq!(written.changes.new, ["2-1"]);
}

#[test]
fn a_removed_story_keeps_its_item_and_is_named() {
    let mut epics = sample_epics();
    let first_text = write_plan("", &epics).text;
    epics[0].stories.remove(1);
    let written = write_plan(&first_text, &epics);
    assert_eq!(written.text, first_text);
    assert_eq!(written.changes.vanished, ["1-2"]);
}

#[test]
fn a_plan_of_another_tool_is_taken_over_with_its_ticks() {
    let plan_text =
        "# Plan\n\n## Stories\n\n### Epic 1: Accounts\n\n- [x] Story 1.1: Sign up\n- [ ] **Story 1.2:** Enter\n";
    let written = write_plan(plan_text, &sample_epics()[..1]);
    assert_eq!(
        without_fingerprints(&written.text),
        "# Plan\n\n## Stories\n\n### Epic 1: Accounts\n\n\
         - [x] Story 1.1: Sign up <!-- story 1-1 counted -->\n  Acceptance criteria: An account is made.\n\
         - [ ] Story 1.2: Log in <!-- story 1-2 -->\n  Story file: stories/1-2-log-in.md\n"
    );
    assert_eq!((written.changes.new.len(), changed_parts(&written)), (0, vec!["1-2: the title".to_string()]));
}

#[test]
fn a_parked_story_gets_no_item_and_an_old_one_is_kept() {
    let mut epics = sample_epics();
    epics[1].stories[0].state = Some(BoardEntryState::Parked(ParkedState::Blocked));
    let written = write_plan("", &epics);
    assert!(!written.text.contains("Export"), "{}", written.text);
    let expected = |in_plan| ParkedPlanStory { story: "2-1".into(), state: ParkedState::Blocked, in_plan };
    assert_eq!(written.changes.parked, [expected(false)]);
    let written = write_plan(&write_plan("", &sample_epics()).text, &epics);
    assert!(written.text.contains("- [ ] Story 2.1: Export"), "{}", written.text);
    assert_eq!(written.changes.parked, [expected(true)]);
}

#[test]
fn only_new_ticks_of_stories_are_found() {
    let plan_text = write_plan("", &sample_epics()).text;
    assert_eq!(find_new_ticks(&plan_text), BTreeSet::new(), "the board knows that 1-1 is done");
    let ticked_text = plan_text.replace("- [ ]", "- [x]") + "- [x] Story 3.1: Of another tool\n- [x] buy milk\n";
    assert_eq!(Vec::from_iter(find_new_ticks(&ticked_text)), ["1-2", "2-1"]);
    // The plan counts the ticks of stories that are on the board.
    let counted_text = write_plan(&ticked_text, &sample_epics()).text;
    assert_eq!(Vec::from_iter(find_new_ticks(&counted_text)), ["2-1"]);
    // An item that is there twice is done when both are ticked.
    let item_line = plan_text.lines().find(|line| line.contains("Story 1.2")).unwrap();
    assert!(!find_new_ticks(&format!("{ticked_text}{item_line}\n")).contains("1-2"));
}

#[test]
fn an_open_code_block_or_comment_is_refused() {
    for plan_text in ["# Plan\n\n```\ncode\n", "# Plan\n\n<!-- note\n"] {
        let problem = write_fix_plan(plan_text, &sample_epics(), "p.md").unwrap_err();
        assert_eq!(problem.to_string(), "p.md: stories cannot be added to this plan", "{plan_text:?}");
    }
}

#[test]
fn a_title_with_marks_of_a_comment_hides_no_item() {
    let stories = [story("1-1-a", "Read <!-- and `-->", &["<!--"]), story("1-2-b", "B", &["-->"])];
    let written = write_plan("", &[epic(1, "<!-- x", &stories)]);
    assert_eq!(written.changes.open, 2);
}

proptest! {
    #[test]
    fn writing_again_changes_nothing(
        plan_text in "(- \\[[ x]\\] (Story [12]\\.[12]: a|b)| <!-- story [1-3]-1 a-b -->|\r?\n|  |```\n\
            |<!--|-->|#{1,3} Epic [12]|# b|.){0,40}"
    ) {
        let epics = sample_epics();
        if let Ok(written) = write_fix_plan(&plan_text, &epics, "p.md") {
            let again = write_fix_plan(&written.text, &epics, "p.md").unwrap();
            prop_assert_eq!(again.text, written.text);
            prop_assert_eq!(written.changes.done + written.changes.open, 3);
        }
    }
}
