//! Questions at the end of a text that are no menus: `<ask>`, `… asks:`, yes or no, named choices, a lone key, a sentence
//! that ends with a question mark.

use std::collections::HashSet;

use serde::Serialize;

use super::{
    Choice, Detection, END, Refusal, Shape,
    group::choice,
    numbered::asks,
    scan::{self, AROUND},
};
use crate::page::{Kind, Line, Page};

/// A question that waits for an answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Question {
    pub asked: Asked,
    pub text: String,
    pub line: usize,
    /// The answers that are named; empty if any answer will do.
    pub choices: Vec<Choice>,
}

/// How a question is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Asked {
    /// `<ask>`.
    Tag,
    /// `**Mary asks: …**`, in a party; it is meant for the user.
    Agent,
    /// `(y/n)`.
    YesNo,
    /// `Choose [1], [2] or …` without a list, or `[C] Continue` alone.
    Key,
    /// Choices with their names in bold, without keys.
    Named,
    Prose,
}

/// Finds the questions in the last lines; a line that belongs to a menu is not asked twice.
pub(super) fn find(page: &Page<'_>, end: usize, found: &Detection, reviewed: &[bool]) -> Vec<Question> {
    let from = end.saturating_sub(END);
    let mut taken: HashSet<usize> = HashSet::new();
    for menu in &found.menus {
        // The prompt above a menu asks for the same, and the line below repeats it.
        let first = menu.lines.start.max(from + 1);
        taken.extend(first.saturating_sub(2)..menu.lines.end.max(first) + 2);
    }
    let mut quoted = quoted(page, found, from);
    let is_open = |index: usize, line: &Line<'_>| {
        let counts = line.kind == Kind::Prose && !scan::is_quoted(line.text) && !line.is_blank();
        counts && reviewed.get(index) != Some(&true)
    };
    let mut questions = Vec::new();
    let lines = page.lines.get(from..end).unwrap_or_default();
    for (at, line) in lines.iter().enumerate() {
        let index = from + at;
        if !is_open(index, line) || taken.contains(&line.number) {
            continue;
        }
        // The forms are tried from the most explicit to the least.
        let named = named(lines, at);
        let question = lone(found, line).or_else(|| of_line(line)).or_else(|| {
            (named.len() >= 2).then(|| {
                taken.extend(named.iter().map(|choice| choice.line));
                asked(Asked::Named, line, named)
            })
        });
        questions.extend(question);
    }
    questions.append(&mut quoted);
    questions.sort_by_key(|question| question.line);
    // A plain question counts only if nothing follows it: otherwise the agent went on by itself.
    if questions.is_empty()
        && let Some((index, line)) =
            page.lines.get(..end).and_then(|lines| lines.iter().enumerate().next_back())
        && is_open(index, line)
        && !taken.contains(&line.number)
        && line.text.trim_end().trim_end_matches(AROUND).ends_with('?')
    {
        questions.push(asked(Asked::Prose, line, Vec::new()));
    }
    questions
}

fn asked(asked: Asked, line: &Line<'_>, choices: Vec<Choice>) -> Question {
    // The text is only shown to the user, so a long line is cut.
    Question { asked, text: line.text.trim().chars().take(500).collect(), line: line.number, choices }
}

/// The questions of numbered lists in quotes: no menus, but BMAD's code review shows its own that way and waits.
fn quoted(page: &Page<'_>, found: &Detection, from: usize) -> Vec<Question> {
    let last = found.rejected.iter().rev().take_while(|rejected| rejected.menu.lines.start > from);
    let lists = last
        .filter(|rejected| rejected.because == [Refusal::Quote] && rejected.menu.shape == Shape::Numbered);
    let asked = lists.filter_map(|rejected| {
        let line = page.lines.get(rejected.menu.lines.start.checked_sub(1)?)?;
        Some(asked(Asked::Key, line, rejected.menu.options.clone()))
    });
    asked.collect()
}

/// The question of a lone key that was rejected only for being alone.
fn lone(found: &Detection, line: &Line<'_>) -> Option<Question> {
    let near = found.rejected.iter().rev().take_while(|rejected| rejected.menu.lines.end > line.number);
    let fits = |menu: &super::Menu| menu.shape == Shape::Lone && menu.lines.start == line.number;
    let mut lone = near.filter(|rejected| rejected.because == [Refusal::OneOption] && fits(&rejected.menu));
    lone.next().map(|rejected| asked(Asked::Key, line, rejected.menu.options.clone()))
}

/// The question that a single line asks.
fn of_line(line: &Line<'_>) -> Option<Question> {
    let text = line.text;
    if text.contains("<ask>") || text.contains("<ask ") {
        return Some(asked(Asked::Tag, line, keys(line)));
    }
    // A long text before `asks:` is a sentence, not a name.
    if let Some(at) = text.find(" asks:") {
        let name = text[..at].trim().trim_matches(AROUND);
        if name.chars().count() <= 40 {
            return Some(asked(Asked::Agent, line, Vec::new()));
        }
    }
    let yes_no = yes_no(line);
    if !yes_no.is_empty() {
        return Some(asked(Asked::YesNo, line, yes_no));
    }
    let keys = keys(line);
    (!keys.is_empty() && asks(text)).then(|| asked(Asked::Key, line, keys))
}

/// The choices of all keys in a line: `Choose option [1], [2], or [3]:`.
fn keys(line: &Line<'_>) -> Vec<Choice> {
    let marks = scan::marks(line.text, 20);
    let keys = marks.iter().map(|mark| choice(mark.key, String::new(), String::new(), line.number));
    keys.collect()
}

/// The choices of `(y/n)` or `[yes/no/revise]`.
fn yes_no(line: &Line<'_>) -> Vec<Choice> {
    let lower = line.text.to_lowercase();
    for (open, _) in lower.match_indices(['(', '[']) {
        let inside = lower[open + 1..].split([')', ']', '(', '[']).next().unwrap_or_default();
        let words: Vec<&str> = inside.split('/').map(str::trim).collect();
        // The list must begin with yes and no; other words with slashes are no answers.
        let is_yes_no = matches!(words.as_slice(), ["y", "n", ..] | ["yes", "no", ..]) && words.len() <= 5;
        if is_yes_no && words.iter().all(|word| !word.is_empty() && word.len() <= 20) {
            let label = |word: &str| match word {
                "y" => "yes".to_string(),
                "n" => "no".to_string(),
                word => word.to_string(),
            };
            return words.iter().map(|word| choice(word, label(word), String::new(), line.number)).collect();
        }
    }
    Vec::new()
}

/// The choices of `- **Approve and continue** — …` below a line that asks for a choice.
fn named(lines: &[Line<'_>], at: usize) -> Vec<Choice> {
    let Some(lead) = lines.get(at).filter(|line| asks(line.text)) else { return Vec::new() };
    let below = lines.get(at + 1..).unwrap_or_default().iter().filter(|line| !line.is_blank());
    let bold = below.map_while(|line| {
        let item = line.text.trim_start();
        let rest = item.strip_prefix(['-', '*', '+', '•'])?.trim_start().strip_prefix("**")?;
        let (name, about) = rest.split_once("**")?;
        let about = about.trim_start_matches(|c: char| !c.is_alphanumeric()).trim().to_string();
        let name = name.trim().trim_end_matches(':').to_string();
        (!name.is_empty() && line.kind == lead.kind).then(|| choice(&name, name.clone(), about, line.number))
    });
    bold.collect()
}
