//! The fix plan of bmalph: a Markdown file whose boxes are the tasks. Boxes in code blocks and comments are examples.

use tribunal_json::{Serialize, schemars};

use super::fix_plan_marks::split_mark;
use crate::{markdown::MarkdownPage, problem::FileProblem, story::parse_checkbox};

/// A plan as its file says it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct FixPlan {
    /// In the order of the file.
    pub items: Vec<FixPlanItem>,
    #[serde(skip)]
    pub problems: Vec<FileProblem>,
}

/// One box of a plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct FixPlanItem {
    /// The text without the mark of a story.
    pub text: String,
    pub done: bool,
    pub line: usize,
    /// How many items it is nested under; 0 is the outermost level.
    pub depth: usize,
    /// The heading above the item; empty if there is none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub heading: String,
}

impl FixPlan {
    pub fn done_count(&self) -> usize {
        self.items.iter().filter(|item| item.done).count()
    }

    pub fn open_count(&self) -> usize {
        self.items.len() - self.done_count()
    }

    pub fn first_open(&self) -> Option<&FixPlanItem> {
        self.items.iter().find(|item| !item.done)
    }

    /// Whether every box is ticked. A plan without boxes is not complete: it says nothing about what is done.
    pub fn is_complete(&self) -> bool {
        !self.items.is_empty() && self.open_count() == 0
    }
}

/// Reads a plan. The path only names the file in problems.
pub fn read_fix_plan(plan_text: &str, file_path: &str) -> FixPlan {
    let markdown = MarkdownPage::parse(plan_text);
    let mut plan = FixPlan::default();
    let mut heading = "";
    // The indentation of the items that the next one may be nested under.
    let mut open_indents: Vec<usize> = Vec::new();
    for line in &markdown.lines {
        if let Some((_, title)) = line.heading() {
            heading = title;
            open_indents.clear();
            continue;
        }
        let Some(checkbox_item) = parse_checkbox(line) else { continue };
        while open_indents.last().is_some_and(|indent| *indent >= checkbox_item.indent) {
            open_indents.pop();
        }
        plan.items.push(FixPlanItem {
            text: split_mark(checkbox_item.text).text,
            done: checkbox_item.done,
            line: checkbox_item.line,
            depth: open_indents.len(),
            heading: heading.to_string(),
        });
        open_indents.push(checkbox_item.indent);
    }
    if plan.items.is_empty() {
        let problem = FileProblem::error("fix-plan-empty", file_path, "the plan has no boxes such as `- [ ] task`")
            .with_reason("The boxes say when the work is done; without any the plan would never be complete.")
            .with_advice("write each task as a line `- [ ] task`");
        plan.problems.push(problem);
    }
    plan
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const PLAN: &str = "# Plan\n\n## High\n- [x] first\n  - [X] nested\n    1. [ ] numbered\n  * [ ] second nested\n\n\
        ```md\n- [ ] example\n```\n<!--\n- [ ] hidden\n-->\n<!-- - [ ] hidden -->\n## Low\n    - [ ] indented\n- no box\n\
        - [x](link)\n+ [ ] last <!-- note -->\n- [ ] Story 1.2: Log in <!-- story 1-2 a1b2c3-d4e5f6 -->\n";

    #[test]
    fn boxes_are_items_with_their_depth_and_heading() {
        let plan = read_fix_plan(PLAN, "@fix_plan.md");
        let rendered: Vec<String> = plan
            .items
            .iter()
            .map(|item| format!("{} {} {} {} {}", item.line, item.depth, item.done, item.heading, item.text))
            .collect();
        assert_eq!(
            rendered,
            [
                "4 0 true High first",
                "5 1 true High nested",
                "6 2 false High numbered",
                "7 1 false High second nested",
                "17 0 false Low indented",
                "20 0 false Low last <!-- note -->",
                "21 0 false Low Story 1.2: Log in",
            ]
        );
        assert_eq!((plan.done_count(), plan.open_count()), (2, 5));
        assert_eq!(plan.first_open().map(|item| item.line), Some(6));
        assert!(!plan.is_complete() && plan.problems.is_empty());
    }

    #[test]
    fn a_plan_is_complete_only_when_it_has_boxes_and_all_are_ticked() {
        let plan = read_fix_plan("- [x] a\n- [X] b\n", "p.md");
        assert!(plan.is_complete() && plan.first_open().is_none());
        // The second box is of an unknown kind, which is not done.
        assert!(!read_fix_plan("- [x] a\n- [~] b\n", "p.md").is_complete());
        for no_boxes in ["", "# Done\n- all of it\n", "```\n- [x] a\n```\n"] {
            let plan = read_fix_plan(no_boxes, "p.md");
            assert!(!plan.is_complete(), "{no_boxes:?}");
            assert_eq!(plan.problems[0].to_string(), "p.md: the plan has no boxes such as `- [ ] task`");
        }
    }

    proptest! {
        #[test]
        fn any_text_can_be_read(plan_text in "(?s)(- \\[[ x]\\] a|\n|  |```\n|<!--|-->|# |.){0,40}") {
            let plan = read_fix_plan(&plan_text, "p.md");
            prop_assert_eq!(plan.items.is_empty(), !plan.problems.is_empty());
            let line_count = plan_text.lines().count();
            prop_assert!(plan.items.iter().all(|item| item.line >= 1 && item.line <= line_count));
        }
    }
}
