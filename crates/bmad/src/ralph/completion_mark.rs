//! The box `- [x] TASK_COMPLETE` in a prompt file, with which agents of ralph-orchestrator declare the prompt done. It is a
//! claim; who asks for it also checks the work.

use crate::{markdown::MarkdownPage, story::parse_checkbox};

/// The text of the box.
const COMPLETION_MARK: &str = "TASK_COMPLETE";

/// Whether a prompt has the ticked box as an item, or as a line of its own without a list mark. A box in a code block or a
/// comment is an instruction to the agent, not its claim.
pub fn has_completion_mark(prompt_text: &str) -> bool {
    MarkdownPage::parse(prompt_text).lines.iter().any(|line| {
        let is_item = parse_checkbox(line).is_some_and(|item| item.done && item.text == COMPLETION_MARK);
        let after_box = line.text.trim().strip_prefix("[x]").or_else(|| line.text.trim().strip_prefix("[X]"));
        is_item || line.is_prose() && after_box.is_some_and(|text| text.trim() == COMPLETION_MARK)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_ticked_box_itself_declares_completion() {
        for (prompt_text, expected) in [
            ("# Task\ntext\n- [x] TASK_COMPLETE\n", true),
            ("[x] TASK_COMPLETE", true),
            ("  * [X]  TASK_COMPLETE  ", true),
            ("- [ ] TASK_COMPLETE", false),
            ("Write `- [x] TASK_COMPLETE` when you are done.", false),
            ("When done, add - [x] TASK_COMPLETE", false),
            ("- [x] TASK_COMPLETE when every test passes", false),
            ("- [x] TASK_COMPLETED", false),
            ("```\n- [x] TASK_COMPLETE\n```\n", false),
            ("<!--\n[x] TASK_COMPLETE\n-->\n", false),
            ("> - [x] TASK_COMPLETE", false),
            ("", false),
        ] {
            assert_eq!(has_completion_mark(prompt_text), expected, "{prompt_text:?}");
        }
    }
}
