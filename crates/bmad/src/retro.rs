//! The document of a retrospective: its epic, the verdict about the epic (from 6.12 on, in the front matter) and the action
//! items. The board only says that the retrospective was held, not how it came out.

use serde::Serialize;

use crate::{
    page::{Line, Page, plain},
    problem::Problem,
    story::Said,
    yaml::{self, Node},
};

/// The verdict about an epic.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    Accepted,
    AcceptedWithOpenItems,
    Rejected,
}

/// The content of a retrospective.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Retro {
    /// The epic, from the front matter, or from the file's name or the title.
    pub epic: Option<u32>,
    pub date: Option<String>,
    /// The verdict; `None` in older eras, which have none.
    pub verdict: Option<Verdict>,
    /// Whether it was held without the user.
    pub headless: Option<bool>,
    pub action_items: Vec<Said>,
    pub problems: Vec<Problem>,
}

impl Verdict {
    pub fn as_str(self) -> &'static str {
        match self {
            Verdict::Accepted => "accepted",
            Verdict::AcceptedWithOpenItems => "accepted-with-open-items",
            Verdict::Rejected => "rejected",
        }
    }

    pub fn parse(said: &str) -> Option<Verdict> {
        match said.trim().to_ascii_lowercase().replace([' ', '_'], "-").as_str() {
            "accepted" => Some(Verdict::Accepted),
            "accepted-with-open-items" => Some(Verdict::AcceptedWithOpenItems),
            "rejected" => Some(Verdict::Rejected),
            _ => None,
        }
    }
}

/// Reads a retrospective.
pub fn read(path: &str, text: &str) -> Retro {
    let page = Page::of(text);
    let mut retro = Retro { action_items: action_items(&page), ..Retro::default() };
    match page.front_matter().map(yaml::parse) {
        Some(Ok(front)) => from_front(path, &front, &mut retro),
        Some(Err(broken)) => {
            // The front matter begins behind the first mark, so its lines are one further down in the file.
            let line = broken.line.map_or(1, |line| line + 1);
            let what = format!("in the front matter: {}", broken.what);
            let problem = Problem::error("front-matter-broken", path, what).at(line);
            retro.problems.push(problem.why("the verdict stands there").todo("mend it"));
        }
        None => {}
    }
    let name = path.rsplit('/').next().unwrap_or(path);
    let title = page.lines.iter().find_map(Line::heading).map_or("", |(_, title)| title);
    // The front matter knows best; agents name files more reliably than titles.
    retro.epic = retro.epic.or_else(|| epic_in(name)).or_else(|| epic_in(title));
    retro
}

fn from_front(path: &str, front: &Node, retro: &mut Retro) {
    let said = |key: &str| front.get(key).and_then(Node::text).map(str::trim).filter(|text| !text.is_empty());
    retro.epic = said("epic").and_then(|epic| epic.parse().ok());
    retro.date = said("date").map(str::to_string);
    retro.headless = said("headless").and_then(|said| said.parse().ok());
    let Some(word) = said("verdict") else { return };
    retro.verdict = Verdict::parse(word);
    if retro.verdict.is_none() {
        let line = front.get("verdict").map_or(1, |node| node.line + 1);
        let problem =
            Problem::error("retro-verdict-unknown", path, format!("{word:?} is no verdict")).at(line);
        let todo = "write accepted, accepted-with-open-items or rejected";
        retro.problems.push(problem.why("whether the next epic may begin stands there").todo(todo));
    }
}

/// The number behind the word `epic`.
fn epic_in(text: &str) -> Option<u32> {
    let text = text.to_ascii_lowercase();
    let (_, rest) = text.split_once("epic")?;
    let rest = rest.trim_start_matches(['-', '_', ' ']);
    let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    rest[..end].parse().ok()
}

/// The list items under headings that mention action items.
fn action_items(page: &Page<'_>) -> Vec<Said> {
    let mut found = Vec::new();
    let mut above: Vec<(usize, bool)> = Vec::new();
    // The open headings with their levels, and whether action items are expected below them.
    for line in page.lines.iter().filter(|line| line.is_prose()) {
        if let Some((level, title)) = line.heading() {
            while above.last().is_some_and(|(other, _)| *other >= level) {
                above.pop();
            }
            let title = plain(title);
            // A subheading of action items, such as a priority, holds action items, too.
            let own = title.starts_with("action item") || title.ends_with("action items");
            above.push((level, own || above.last().is_some_and(|(_, inherited)| *inherited)));
            continue;
        }
        if above.last().is_some_and(|(_, own)| *own)
            && let Some(text) = item(line.text)
        {
            found.push(Said { text: text.to_string(), line: line.number });
        }
    }
    found
}

/// The text of a list item at the outermost level; `None` is how templates say that there are no items.
fn item(line: &str) -> Option<&str> {
    // An indented item is a detail of the item above it.
    let digits = line.trim_start_matches(|c: char| c.is_ascii_digit());
    let mark: &[char] = if digits.len() < line.len() { &['.', ')'] } else { &['-', '*', '+'] };
    let rest = digits.strip_prefix(mark).filter(|rest| rest.starts_with([' ', '\t']))?.trim();
    let rest = ["[ ]", "[x]", "[X]"].iter().find_map(|mark| rest.strip_prefix(mark)).unwrap_or(rest).trim();
    (!rest.is_empty() && !rest.eq_ignore_ascii_case("none")).then_some(rest)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn drawn(path: &str, text: &str) -> String {
        let Retro { epic, date, verdict, headless, action_items, problems } = read(path, text);
        let items: Vec<String> =
            action_items.iter().map(|said| format!("{}:{}", said.line, said.text)).collect();
        let rules: Vec<String> =
            problems.iter().map(|problem| format!("{} {problem}", problem.rule)).collect();
        format!("{epic:?} {date:?} {verdict:?} {headless:?} {items:?} {rules:?}")
    }

    #[test]
    fn the_verdict_stands_in_the_front_matter_and_the_rest_in_the_text() {
        let late = "---\nepic: 3\ndate: 2026-08-01\nverdict: accepted-with-open-items\nheadless: true\n---\n# R\n\n## Action items\n\n\
                    - Add a test (owner: A)\n  - detail\n1. [ ] Second\n\n## Open questions\n- no\n";
        let all = [
            drawn("epic-3-retro-x.md", late),
            drawn("out/epic-12-retro-2026-01-01.md", "# Retro\n### Process Action Items\n* one\n- None\n"),
            drawn("RETROSPECTIVE.md", "---\nverdict: rejected\n---\n# Epic 4 Retrospective\n"),
            drawn("r.md", "---\nverdict: accepted | rejected\n---\n"),
            drawn("r.md", "---\nverdict: [\n---\n"),
        ];
        insta::assert_snapshot!(all.join("\n"), @r#"
        Some(3) Some("2026-08-01") Some(AcceptedWithOpenItems) Some(true) ["11:Add a test (owner: A)", "13:Second"] []
        Some(12) None None None ["3:one"] []
        Some(4) None Some(Rejected) None [] []
        None None None None [] ["retro-verdict-unknown r.md:2: \"accepted | rejected\" is no verdict"]
        None None None None [] ["front-matter-broken r.md:2: in the front matter: this is no YAML: unclosed bracket '['"]
        "#);
    }

    proptest! {
        #[test]
        fn any_text_is_read_without_falling_over(text in "(?s)(---\nverdict: )?.{0,120}") {
            let _ = read(&text, &text);
        }
    }
}
