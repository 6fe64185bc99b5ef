//! Records that the operator has done what only the operator can do.

use super::{ByteEdit, StoryEditRefusal, end_without_blanks, insert_lines, verify_edit, with_blank_line_before};
use crate::{
    markdown::{MarkdownPage, apply_edits, escape_comments},
    story::{
        links::{self, ActionBox},
        tasks,
    },
};

/// Records actions as confirmed on a date such as `2026-01-02`, in a section at the end of the file, and ticks their boxes.
/// Actions that are recorded already are left out.
pub fn confirm_actions(story_text: &str, actions: &[String], date: &str) -> Result<String, StoryEditRefusal> {
    let markdown = MarkdownPage::parse(story_text);
    let action_boxes = links::find_action_boxes(&markdown);
    let mut recorded_keys = find_recorded_keys(&action_boxes);
    let mut action_keys: Vec<String> = Vec::new();
    let mut new_lines: Vec<String> = Vec::new();
    for action in actions {
        let action_key = links::action_key(action);
        if action_key.is_empty() {
            continue;
        }
        if !recorded_keys.contains(&action_key) {
            // The text must not open a comment that would hide the rest of the file.
            let action_text = escape_comments(&links::to_one_line(action));
            new_lines.push(format!("- [x] {action_text} (confirmed {})", links::to_one_line(date)));
            recorded_keys.push(action_key.clone());
        }
        action_keys.push(action_key);
    }
    let is_confirmed = |box_keys: Vec<String>| box_keys.iter().any(|box_key| action_keys.contains(box_key));
    let ticked_boxes = action_boxes.iter().filter(|action_box| {
        !action_box.is_confirmation && !action_box.item.done && is_confirmed(action_box.action_keys())
    });
    let mut edits: Vec<ByteEdit> =
        ticked_boxes.map(|ActionBox { item, .. }| (item.box_range.0..item.box_range.1, "x".to_string())).collect();
    if !new_lines.is_empty() {
        edits.push(insert_confirmation(&markdown, new_lines));
    }
    if edits.is_empty() {
        return Ok(story_text.to_string());
    }
    edits.sort_by_key(|(range, _)| range.start);
    // A box is found twice where one section for actions is inside another.
    edits.dedup();
    let edited_text = apply_edits(story_text, &edits);
    let read_back_keys = find_recorded_keys(&links::find_action_boxes(&MarkdownPage::parse(&edited_text)));
    let is_recorded = action_keys.iter().all(|action_key| read_back_keys.contains(action_key));
    verify_edit(story_text, edited_text, |old_story, _| {
        // The confirmed actions are no longer owed; everything else must be the same.
        old_story.links.operator_actions.retain(|action| !action_keys.contains(&links::action_key(action)));
        is_recorded
    })
}

/// The keys of the actions that the section for confirmations has.
fn find_recorded_keys(action_boxes: &[ActionBox<'_>]) -> Vec<String> {
    let recorded_boxes = action_boxes.iter().filter(|action_box| action_box.is_confirmation && action_box.item.done);
    recorded_boxes.flat_map(ActionBox::action_keys).collect()
}

/// The edit that adds lines to the section for confirmations; a missing section is created at the end of the file.
fn insert_confirmation(markdown: &MarkdownPage<'_>, mut new_lines: Vec<String>) -> ByteEdit {
    if let Some(section) = markdown.find_section(links::is_confirmation_title) {
        let section_lines = &markdown.lines[section.line_range.clone()];
        let last_box = section_lines.iter().rposition(|line| tasks::parse_checkbox(line).is_some());
        if let Some(last_box) = last_box {
            return insert_lines(markdown, section.line_range.start + last_box + 1, &new_lines);
        }
        // Without boxes, the lines follow the heading or what is written below it.
        let insert_index = end_without_blanks(markdown, section.line_range.start, section.line_range.end);
        return insert_lines(markdown, insert_index, &with_blank_line_before(markdown, insert_index, new_lines));
    }
    new_lines.splice(0..0, ["## Operator Confirmation".to_string(), String::new()]);
    let insert_index = end_without_blanks(markdown, 0, markdown.lines.len());
    insert_lines(markdown, insert_index, &with_blank_line_before(markdown, insert_index, new_lines))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::story::read_story;

    fn confirm(story_text: &str, actions: &[&str]) -> String {
        let actions: Vec<String> = actions.iter().map(|action| action.to_string()).collect();
        let edited_text = confirm_actions(story_text, &actions, "2026-01-02").unwrap();
        // The same actions on another day are recorded already.
        assert_eq!(confirm_actions(&edited_text, &actions, "2026-01-03").unwrap(), edited_text);
        edited_text
    }

    const STORY: &str = "---\r\noperator_actions: [Buy the domain, Grant a key]\r\n---\r\n# A\r\n\r\n## Operator Actions\r\n\r\n\
                         - [ ] Buy the domain\r\n- [ ] Sign\r\n\r\n## Tasks\r\n\r\n- [ ] Buy the domain\r\n\r\n";

    #[test]
    fn actions_are_ticked_and_recorded_at_the_end() {
        let confirmed_text = confirm(STORY, &["buy the  domain", "Grant a key", "Grant a key", " "]);
        assert_eq!(
            confirmed_text,
            "---\r\noperator_actions: [Buy the domain, Grant a key]\r\n---\r\n# A\r\n\r\n## Operator Actions\r\n\r\n\
             - [x] Buy the domain\r\n- [ ] Sign\r\n\r\n## Tasks\r\n\r\n- [ ] Buy the domain\r\n\r\n\
             ## Operator Confirmation\r\n\r\n- [x] buy the domain (confirmed 2026-01-02)\r\n\
             - [x] Grant a key (confirmed 2026-01-02)\r\n\r\n"
        );
        assert_eq!(read_story("", &confirmed_text).links.operator_actions, ["Sign"]);
        assert_eq!(read_story("", &confirmed_text).task_progress(), (0, 1));
    }

    #[test]
    fn a_section_that_exists_gets_what_is_missing() {
        for (story_text, expected) in [
            ("# A", "# A\n\n## Operator Confirmation\n\n- [x] Call (confirmed 2026-01-02)"),
            (
                "# A\n## Operator Confirmation\n- [x] Sign (confirmed 2025-01-02)\n\n## B\n",
                "# A\n## Operator Confirmation\n- [x] Sign (confirmed 2025-01-02)\n- [x] Call (confirmed 2026-01-02)\n\n## B\n",
            ),
            (
                "# A\n\n## Operator confirmation\n\nBy Bob.\n",
                "# A\n\n## Operator confirmation\n\nBy Bob.\n\n- [x] Call (confirmed 2026-01-02)\n",
            ),
            (
                "# A\n## Operator Confirmation\n- [x] call. (confirmed 2025-01-02)\n",
                "# A\n## Operator Confirmation\n- [x] call. (confirmed 2025-01-02)\n",
            ),
        ] {
            assert_eq!(confirm(story_text, &["Call"]), expected);
        }
        assert_eq!(confirm("# A\n", &[]), "# A\n");
        assert!(confirm("# A\n", &["send `<!--` and <!-- x"]).contains("- [x] send `<!--` and &lt;!-- x (confirmed"));
    }

    #[test]
    fn a_file_that_would_hide_the_section_is_refused() {
        let refusal = confirm_actions("# A\n\n```\ncode\n", &["Call".to_string()], "2026-01-02").unwrap_err();
        assert_eq!(refusal.reason, "the edited file would not read back as intended");
        // A tag of a review would make a follow-up of the action.
        assert!(confirm_actions("# A\n", &["[Review][Patch] Call".to_string()], "2026-01-02").is_err());
    }
}
