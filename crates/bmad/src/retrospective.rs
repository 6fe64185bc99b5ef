//! The document of a retrospective: its epic, the verdict about the epic (from 6.12 on, in the front matter) and the action
//! items. The board only says that the retrospective was held, not how it came out.

use tribunal_json::Serialize;

use crate::{
    markdown::{MarkdownLine, MarkdownPage, normalize_title},
    problem::FileProblem,
    story::LocatedText,
    yaml::{self, YamlNode},
};

/// The verdict about an epic.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum RetroVerdict {
    Accepted,
    AcceptedWithOpenItems,
    Rejected,
}

/// The content of a retrospective.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Retrospective {
    /// The epic, from the front matter, or from the file's name or the title.
    pub epic: Option<u32>,
    pub date: Option<String>,
    /// The verdict; `None` in older eras, which have none.
    pub verdict: Option<RetroVerdict>,
    /// Whether it was held without the user.
    pub headless: Option<bool>,
    pub action_items: Vec<LocatedText>,
    pub problems: Vec<FileProblem>,
}

impl RetroVerdict {
    pub fn as_str(self) -> &'static str {
        match self {
            RetroVerdict::Accepted => "accepted",
            RetroVerdict::AcceptedWithOpenItems => "accepted-with-open-items",
            RetroVerdict::Rejected => "rejected",
        }
    }

    pub fn parse(verdict_text: &str) -> Option<RetroVerdict> {
        match verdict_text.trim().to_ascii_lowercase().replace([' ', '_'], "-").as_str() {
            "accepted" => Some(RetroVerdict::Accepted),
            "accepted-with-open-items" => Some(RetroVerdict::AcceptedWithOpenItems),
            "rejected" => Some(RetroVerdict::Rejected),
            _ => None,
        }
    }
}

/// Reads a retrospective.
pub fn read_retrospective(retro_path: &str, retro_text: &str) -> Retrospective {
    let markdown = MarkdownPage::parse(retro_text);
    let mut retrospective = Retrospective { action_items: find_action_items(&markdown), ..Retrospective::default() };
    match markdown.front_matter().map(yaml::parse_yaml) {
        Some(Ok(front_matter)) => read_front_matter(retro_path, &front_matter, &mut retrospective),
        Some(Err(parse_error)) => {
            // The front matter begins behind the first mark, so its lines are one further down in the file.
            let line_number = parse_error.line.map_or(1, |line_number| line_number + 1);
            let message = format!("{} (in the front matter)", parse_error.message);
            let problem = FileProblem::error("front-matter-broken", retro_path, message).at_line(line_number);
            retrospective
                .problems
                .push(problem.with_reason("The front matter contains the verdict.").with_advice("fix the YAML"));
        }
        None => {}
    }
    let file_name = retro_path.rsplit('/').next().unwrap_or(retro_path);
    let title = markdown.lines.iter().find_map(MarkdownLine::heading).map_or("", |(_, title)| title);
    // The front matter wins over the file's name, and the name over the title.
    retrospective.epic = retrospective.epic.or_else(|| find_epic_number(file_name)).or_else(|| find_epic_number(title));
    retrospective
}

fn read_front_matter(retro_path: &str, front_matter: &YamlNode, retrospective: &mut Retrospective) {
    let field_value = |key: &str| {
        front_matter.get(key).and_then(YamlNode::scalar_text).map(str::trim).filter(|text| !text.is_empty())
    };
    retrospective.epic = field_value("epic").and_then(|epic| epic.parse().ok());
    retrospective.date = field_value("date").map(str::to_string);
    retrospective.headless = field_value("headless").and_then(|headless| headless.parse().ok());
    let Some(verdict_text) = field_value("verdict") else { return };
    retrospective.verdict = RetroVerdict::parse(verdict_text);
    if retrospective.verdict.is_none() {
        let line_number = front_matter.get("verdict").map_or(1, |node| node.line + 1);
        let problem =
            FileProblem::error("retro-verdict-unknown", retro_path, format!("unknown verdict {verdict_text:?}"))
                .at_line(line_number);
        let advice = "use accepted, accepted-with-open-items or rejected";
        retrospective
            .problems
            .push(problem.with_reason("The verdict decides whether the next epic may start.").with_advice(advice));
    }
}

/// Whether a file is the retrospective of an epic by its name: `epic-1-retro-2026-01-02.md`, `epic-01-retrospective.md`.
pub fn is_retrospective_of(file_name: &str, epic: u32) -> bool {
    let lower_name = file_name.to_ascii_lowercase();
    let Some(after_epic) = lower_name.strip_suffix(".md").and_then(|file_stem| file_stem.strip_prefix("epic-")) else {
        return false;
    };
    // The whole number counts: `epic-12-retro` is not about epic 1.
    let Some((number_text, after_number)) = after_epic.split_once('-') else { return false };
    let first_word = after_number.split('-').next().unwrap_or_default();
    number_text.chars().all(|character| character.is_ascii_digit())
        && number_text.parse::<u32>() == Ok(epic)
        && (first_word == "retro" || first_word == "retrospective")
}

/// The number behind the word `epic`.
fn find_epic_number(named_text: &str) -> Option<u32> {
    let named_text = named_text.to_ascii_lowercase();
    let (_, after_epic) = named_text.split_once("epic")?;
    let after_epic = after_epic.trim_start_matches(['-', '_', ' ']);
    let digits_end = after_epic.find(|character: char| !character.is_ascii_digit()).unwrap_or(after_epic.len());
    after_epic[..digits_end].parse().ok()
}

/// The list items under headings that mention action items.
fn find_action_items(markdown: &MarkdownPage<'_>) -> Vec<LocatedText> {
    let mut found_items = Vec::new();
    // The open headings with their levels, and whether action items are expected below them.
    let mut open_sections: Vec<(usize, bool)> = Vec::new();
    for line in markdown.lines.iter().filter(|line| line.is_prose()) {
        if let Some((level, title)) = line.heading() {
            while open_sections.last().is_some_and(|(open_level, _)| *open_level >= level) {
                open_sections.pop();
            }
            let title = normalize_title(title);
            // A subheading of action items, such as a priority, holds action items, too.
            let is_action_section = title.starts_with("action item") || title.ends_with("action items");
            open_sections
                .push((level, is_action_section || open_sections.last().is_some_and(|(_, is_inside)| *is_inside)));
            continue;
        }
        if open_sections.last().is_some_and(|(_, is_action_section)| *is_action_section)
            && let Some(item_text) = parse_list_item(line.text)
        {
            found_items.push(LocatedText { text: item_text.to_string(), line: line.number });
        }
    }
    found_items
}

/// The text of a list item at the outermost level. An item with the word `None` is no item: templates write it into empty lists.
fn parse_list_item(line: &str) -> Option<&str> {
    // An indented item is a detail of the item above it.
    let after_digits = line.trim_start_matches(|character: char| character.is_ascii_digit());
    let list_marks: &[char] = if after_digits.len() < line.len() { &['.', ')'] } else { &['-', '*', '+'] };
    let item_text =
        after_digits.strip_prefix(list_marks).filter(|item_text| item_text.starts_with([' ', '\t']))?.trim();
    let item_text =
        ["[ ]", "[x]", "[X]"].iter().find_map(|box_mark| item_text.strip_prefix(box_mark)).unwrap_or(item_text).trim();
    (!item_text.is_empty() && !item_text.eq_ignore_ascii_case("none")).then_some(item_text)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn render_retrospective(retro_path: &str, retro_text: &str) -> String {
        let Retrospective { epic, date, verdict, headless, action_items, problems } =
            read_retrospective(retro_path, retro_text);
        let rendered_items: Vec<String> =
            action_items.iter().map(|action_item| format!("{}:{}", action_item.line, action_item.text)).collect();
        let rendered_problems: Vec<String> =
            problems.iter().map(|problem| format!("{} {problem}", problem.rule)).collect();
        format!("{epic:?} {date:?} {verdict:?} {headless:?} {rendered_items:?} {rendered_problems:?}")
    }

    #[test]
    fn the_verdict_stands_in_the_front_matter_and_the_rest_in_the_text() {
        let late_era = "---\nepic: 3\ndate: 2026-08-01\nverdict: accepted-with-open-items\nheadless: true\n---\n# R\n\n## Action items\n\n\
                    - Add a test (owner: A)\n  - detail\n1. [ ] Second\n\n## Open questions\n- no\n";
        let rendered = [
            render_retrospective("epic-3-retro-x.md", late_era),
            render_retrospective(
                "out/epic-12-retro-2026-01-01.md",
                "# Retro\n### Process Action Items\n* one\n- None\n",
            ),
            render_retrospective("RETROSPECTIVE.md", "---\nverdict: rejected\n---\n# Epic 4 Retrospective\n"),
            render_retrospective("r.md", "---\nverdict: accepted | rejected\n---\n"),
            render_retrospective("r.md", "---\nverdict: [\n---\n"),
        ];
        insta::assert_snapshot!(rendered.join("\n"), @r#"
        Some(3) Some("2026-08-01") Some(AcceptedWithOpenItems) Some(true) ["11:Add a test (owner: A)", "13:Second"] []
        Some(12) None None None ["3:one"] []
        Some(4) None Some(Rejected) None [] []
        None None None None [] ["retro-verdict-unknown r.md:2: unknown verdict \"accepted | rejected\""]
        None None None None [] ["front-matter-broken r.md:2: invalid YAML: unclosed bracket '[' (in the front matter)"]
        "#);
    }

    #[test]
    fn a_retrospective_is_found_by_the_name_of_its_file() {
        for file_name in [
            "epic-1-retro-2026-01-02.md",
            "epic-1-retrospective.md",
            "epic-01-retro.md",
            "Epic-1-Retro.md",
            "epic-1-retrospective-2.md",
        ] {
            assert!(is_retrospective_of(file_name, 1), "{file_name}");
        }
        for file_name in [
            "epic-12-retro-2026-01-02.md",
            "epic-11-retro.md",
            "epic-1.md",
            "epic-1-retrofit.md",
            "epic-+1-retro.md",
            "epic--1-retro.md",
            "1-1-retro.md",
            "epic-1-retro.txt",
        ] {
            assert!(!is_retrospective_of(file_name, 1), "{file_name}");
        }
        assert!(is_retrospective_of("epic-12-retro-2026-01-02.md", 12));
    }

    proptest! {
        #[test]
        fn any_text_is_read_without_falling_over(text in "(?s)(---\nverdict: )?.{0,120}") {
            let _ = read_retrospective(&text, &text);
        }
    }
}
