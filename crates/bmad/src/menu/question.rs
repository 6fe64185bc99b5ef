//! Questions at the end of a text that are no menus: `<ask>`, `… asks:`, yes or no, named choices, a lone key, a sentence
//! that ends with a question mark.

use std::collections::HashSet;

use tribunal_json::Serialize;

use super::{
    END_LINES, MenuChoice, MenuDetection, MenuRefusal, MenuShape,
    group::make_choice,
    line_scan::{self, EMPHASIS_AND_QUOTES},
    numbered::asks_for_choice,
};
use crate::markdown::{MarkdownLine, MarkdownLineKind, MarkdownPage};

/// A question that waits for an answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct OpenQuestion {
    pub asked: QuestionKind,
    pub text: String,
    pub line: usize,
    /// The answers that are named; empty if any answer will do.
    pub choices: Vec<MenuChoice>,
}

/// How a question is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum QuestionKind {
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
pub(super) fn find_questions(
    markdown: &MarkdownPage<'_>,
    end_index: usize,
    detection: &MenuDetection,
    reviewed_flags: &[bool],
) -> Vec<OpenQuestion> {
    let first_index = end_index.saturating_sub(END_LINES);
    let mut taken_lines: HashSet<usize> = HashSet::new();
    for menu in &detection.menus {
        // The prompt above a menu asks for the same, and the line below repeats it.
        let first_line = menu.lines.start.max(first_index + 1);
        taken_lines.extend(first_line.saturating_sub(2)..menu.lines.end.max(first_line) + 2);
    }
    let mut quoted_lists = quoted_questions(markdown, detection, first_index);
    let is_answerable = |line_index: usize, markdown_line: &MarkdownLine<'_>| {
        let is_prose_line = markdown_line.kind == MarkdownLineKind::Prose
            && !line_scan::is_quoted(markdown_line.text)
            && !markdown_line.is_blank();
        is_prose_line && reviewed_flags.get(line_index) != Some(&true)
    };
    let mut questions = Vec::new();
    let end_lines = markdown.lines.get(first_index..end_index).unwrap_or_default();
    for (line_offset, markdown_line) in end_lines.iter().enumerate() {
        let line_index = first_index + line_offset;
        if !is_answerable(line_index, markdown_line) || taken_lines.contains(&markdown_line.number) {
            continue;
        }
        // The forms are tried from the most explicit to the least.
        let bold_choices = named_choices(end_lines, line_offset);
        let question =
            lone_key_question(detection, markdown_line).or_else(|| question_in_line(markdown_line)).or_else(|| {
                (bold_choices.len() >= 2).then(|| {
                    taken_lines.extend(bold_choices.iter().map(|choice| choice.line));
                    make_question(QuestionKind::Named, markdown_line, bold_choices)
                })
            });
        questions.extend(question);
    }
    questions.append(&mut quoted_lists);
    questions.sort_by_key(|question| question.line);
    // A plain question counts only if nothing follows it: otherwise the agent went on by itself.
    if questions.is_empty()
        && let Some((line_index, markdown_line)) =
            markdown.lines.get(..end_index).and_then(|lines| lines.iter().enumerate().next_back())
        && is_answerable(line_index, markdown_line)
        && !taken_lines.contains(&markdown_line.number)
        && markdown_line.text.trim_end().trim_end_matches(EMPHASIS_AND_QUOTES).ends_with('?')
    {
        questions.push(make_question(QuestionKind::Prose, markdown_line, Vec::new()));
    }
    questions
}

fn make_question(
    question_kind: QuestionKind,
    markdown_line: &MarkdownLine<'_>,
    choices: Vec<MenuChoice>,
) -> OpenQuestion {
    // The text is only shown to the user, so a long line is cut.
    OpenQuestion {
        asked: question_kind,
        text: markdown_line.text.trim().chars().take(500).collect(),
        line: markdown_line.number,
        choices,
    }
}

/// The questions of numbered lists in quotes: no menus, but BMAD's code review shows its own that way and waits.
fn quoted_questions(markdown: &MarkdownPage<'_>, detection: &MenuDetection, first_index: usize) -> Vec<OpenQuestion> {
    let late_rejections =
        detection.rejected.iter().rev().take_while(|rejected| rejected.menu.lines.start > first_index);
    let quoted_lists = late_rejections
        .filter(|rejected| rejected.because == [MenuRefusal::Quote] && rejected.menu.shape == MenuShape::Numbered);
    let quoted_choices = quoted_lists.filter_map(|rejected| {
        let markdown_line = markdown.lines.get(rejected.menu.lines.start.checked_sub(1)?)?;
        Some(make_question(QuestionKind::Key, markdown_line, rejected.menu.options.clone()))
    });
    quoted_choices.collect()
}

/// The question of a lone key that was rejected only for being alone.
fn lone_key_question(detection: &MenuDetection, markdown_line: &MarkdownLine<'_>) -> Option<OpenQuestion> {
    let nearby_rejections =
        detection.rejected.iter().rev().take_while(|rejected| rejected.menu.lines.end > markdown_line.number);
    let is_lone_here = |menu: &super::Menu| menu.shape == MenuShape::Lone && menu.lines.start == markdown_line.number;
    let mut lone_rejections = nearby_rejections
        .filter(|rejected| rejected.because == [MenuRefusal::OneOption] && is_lone_here(&rejected.menu));
    lone_rejections
        .next()
        .map(|rejected| make_question(QuestionKind::Key, markdown_line, rejected.menu.options.clone()))
}

/// The question that a single line asks.
fn question_in_line(markdown_line: &MarkdownLine<'_>) -> Option<OpenQuestion> {
    let line_text = markdown_line.text;
    if line_text.contains("<ask>") || line_text.contains("<ask ") {
        return Some(make_question(QuestionKind::Tag, markdown_line, keys_in_line(markdown_line)));
    }
    // A long text before `asks:` is a sentence, not a name.
    if let Some(asks_offset) = line_text.find(" asks:") {
        let asker_name = line_text[..asks_offset].trim().trim_matches(EMPHASIS_AND_QUOTES);
        if asker_name.chars().count() <= 40 {
            return Some(make_question(QuestionKind::Agent, markdown_line, Vec::new()));
        }
    }
    let yes_no_answers = yes_no_choices(markdown_line);
    if !yes_no_answers.is_empty() {
        return Some(make_question(QuestionKind::YesNo, markdown_line, yes_no_answers));
    }
    let mentioned_keys = keys_in_line(markdown_line);
    (!mentioned_keys.is_empty() && asks_for_choice(line_text))
        .then(|| make_question(QuestionKind::Key, markdown_line, mentioned_keys))
}

/// The choices of all keys in a line: `Choose option [1], [2], or [3]:`.
fn keys_in_line(markdown_line: &MarkdownLine<'_>) -> Vec<MenuChoice> {
    let key_marks = line_scan::find_marks(markdown_line.text, 20);
    let key_choices =
        key_marks.iter().map(|key_mark| make_choice(key_mark.key, String::new(), String::new(), markdown_line.number));
    key_choices.collect()
}

/// The choices of `(y/n)` or `[yes/no/revise]`.
fn yes_no_choices(markdown_line: &MarkdownLine<'_>) -> Vec<MenuChoice> {
    let lower_case = markdown_line.text.to_lowercase();
    for (bracket_offset, _) in lower_case.match_indices(['(', '[']) {
        let bracketed = lower_case[bracket_offset + 1..].split([')', ']', '(', '[']).next().unwrap_or_default();
        let answer_words: Vec<&str> = bracketed.split('/').map(str::trim).collect();
        // The list must begin with yes and no; other words with slashes are no answers.
        let is_yes_no =
            matches!(answer_words.as_slice(), ["y", "n", ..] | ["yes", "no", ..]) && answer_words.len() <= 5;
        if is_yes_no && answer_words.iter().all(|answer_word| !answer_word.is_empty() && answer_word.len() <= 20) {
            let full_label = |answer_word: &str| match answer_word {
                "y" => "yes".to_string(),
                "n" => "no".to_string(),
                answer_word => answer_word.to_string(),
            };
            return answer_words
                .iter()
                .map(|answer_word| {
                    make_choice(answer_word, full_label(answer_word), String::new(), markdown_line.number)
                })
                .collect();
        }
    }
    Vec::new()
}

/// The choices of `- **Approve and continue** — …` below a line that asks for a choice.
fn named_choices(lines: &[MarkdownLine<'_>], lead_index: usize) -> Vec<MenuChoice> {
    let Some(lead_line) = lines.get(lead_index).filter(|markdown_line| asks_for_choice(markdown_line.text)) else {
        return Vec::new();
    };
    let lines_below =
        lines.get(lead_index + 1..).unwrap_or_default().iter().filter(|markdown_line| !markdown_line.is_blank());
    let bold_choices = lines_below.map_while(|markdown_line| {
        let item_text = markdown_line.text.trim_start();
        let after_bold_mark = item_text.strip_prefix(['-', '*', '+', '•'])?.trim_start().strip_prefix("**")?;
        let (choice_name, description) = after_bold_mark.split_once("**")?;
        let description =
            description.trim_start_matches(|character: char| !character.is_alphanumeric()).trim().to_string();
        let choice_name = choice_name.trim().trim_end_matches(':').to_string();
        (!choice_name.is_empty() && markdown_line.kind == lead_line.kind)
            .then(|| make_choice(&choice_name, choice_name.clone(), description, markdown_line.number))
    });
    bold_choices.collect()
}
