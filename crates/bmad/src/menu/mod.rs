//! Menus in an agent's message: each found menu has its score and the reasons for it, and each rejected one has the reasons
//! against it.
//!
//! A menu has at least two options, each with its key, and is recognized by its structure, its place at the end, its shape
//! and the lack of marks against it. Code, quotes, examples and text under review contain no menus. A lone `[E] Exit …` of a
//! party is a menu, since the party shows nothing else; a lone `[C] Continue …` is not: it is rejected with its reason and
//! returned as a question with one answer, since the agent waits for it all the same. The meaning of an option is read from
//! its label: a `[C]` may exit or convert.
//!
//! Nothing is answered here and nothing is remembered: which option to take is up to the caller, and confirmed mistakes come
//! with the [`MenuContext`].

mod bold_choices;
mod group;
mod known_shapes;
mod line_scan;
mod meaning;
mod numbered;
mod question;
#[cfg(test)]
mod tests;

use std::{borrow::Cow, ops::Range};

use tribunal_json::{Deserialize, Serialize};

use crate::markdown::{MarkdownLineKind, MarkdownPage};
use group::MenuCandidate;
pub use meaning::ChoiceMeaning;
pub use question::{OpenQuestion, QuestionKind};

/// The lowest score of a menu.
pub const MIN_SCORE: u32 = 70;
/// How many lines count as the end of a text.
pub const END_LINES: usize = 20;
/// How many menus of each kind are returned, the latest ones; a text of many megabytes may have any number of them.
const MAX_KEPT: usize = 200;
/// How many candidates are kept before they are judged.
const MAX_CANDIDATES: usize = 10_000;

/// What is known about a message beside its text.
#[derive(Clone, Debug, Default)]
pub struct MenuContext {
    /// The lines of content under review, from 1, the end excluded.
    pub reviewed_lines: Vec<Range<usize>>,
    /// The marks between which content under review stands, each on a line of its own.
    pub review_fences: Vec<(String, String)>,
}

/// What was found in a text, each list in the order of its lines.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct MenuDetection {
    pub menus: Vec<Menu>,
    pub rejected: Vec<RejectedMenu>,
    /// The questions at the end of the text that wait for an answer and are no menus.
    pub questions: Vec<OpenQuestion>,
    /// How many earlier menus and rejected ones are left out, because there are too many.
    pub left_out: usize,
}

/// A menu with its score.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Menu {
    pub options: Vec<MenuChoice>,
    pub shape: MenuShape,
    /// The lines of the menu, from 1, the end excluded.
    pub lines: Range<usize>,
    pub score: u32,
    pub reasons: Vec<MenuScoreReason>,
}

/// Text that looks like a menu and is none.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RejectedMenu {
    #[serde(flatten)]
    pub menu: Menu,
    pub because: Vec<MenuRefusal>,
}

/// One option of a menu.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct MenuChoice {
    /// The key as it is written: a lower-case key is answered in lower case.
    pub key: String,
    pub label: String,
    /// The description behind the label.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub about: String,
    pub line: usize,
    pub meaning: ChoiceMeaning,
}

/// How a menu is written and, where the form shows it, what it is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum MenuShape {
    /// One option on each line.
    Vertical,
    /// All options on one line.
    Horizontal,
    /// Numbers in brackets, or a numbered list with a question about it.
    Numbered,
    /// `[Y] [V] [N]`.
    Iteration,
    /// `[E] Exit Party Mode`.
    Exit,
    /// `[C]reate / [E]dit`.
    Glued,
    /// `Continue [c] or Edit [e]?`
    Trailing,
    /// `Choose a number (1-5), [r] to Reshuffle, …`
    Elicitation,
    /// A list of choices in bold, each answered by its name.
    Named,
    /// A single option.
    Lone,
}

/// A part of the score.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct MenuScoreReason {
    pub points: i32,
    pub why: String,
}

/// Why a text is no menu, even with a high score.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum MenuRefusal {
    OneOption,
    Code,
    Comment,
    FrontMatter,
    Quote,
    Example,
    Reviewed,
    Link,
    Footnote,
    Checkbox,
    Placeholder,
    Sentence,
    SameKeyTwice,
    Instruction,
    Many,
    Score,
}

impl MenuRefusal {
    pub fn description(self) -> &'static str {
        match self {
            MenuRefusal::OneOption => "only one option; a menu has at least two",
            MenuRefusal::Code => "inside a code block",
            MenuRefusal::Comment => "inside a comment",
            MenuRefusal::FrontMatter => "inside the front matter",
            MenuRefusal::Quote => "quoted (`>`)",
            MenuRefusal::Example => "follows `Example:`, `Sample:`, `Template:` or `Output:`",
            MenuRefusal::Reviewed => "part of the text under review",
            MenuRefusal::Link => "the brackets are links",
            MenuRefusal::Footnote => "the brackets are footnotes",
            MenuRefusal::Checkbox => "the brackets are checkboxes",
            MenuRefusal::Placeholder => "the brackets are placeholders",
            MenuRefusal::Sentence => "the keys are only mentioned in a sentence",
            MenuRefusal::SameKeyTwice => "a key appears twice",
            MenuRefusal::Instruction => "describes what a key does instead of offering it",
            MenuRefusal::Many => "more than 40 options",
            MenuRefusal::Score => "the score is below 70",
        }
    }
}

/// Finds menus and questions in an agent's message.
pub fn detect_menus(message_text: &str, context: &MenuContext) -> MenuDetection {
    let message_text = &strip_colours(message_text);
    let markdown = MarkdownPage::parse(message_text);
    // Blank lines at the end do not push a menu away from the end.
    let end_index = markdown.lines.iter().rposition(|line| !line.is_blank()).map_or(0, |index| index + 1);
    let menu_judge =
        MenuJudge { markdown: &markdown, end_index, reviewed_flags: mark_reviewed_lines(&markdown, context) };
    let mut detection = MenuDetection::default();
    let (candidates, left_out) = find_candidates(&markdown);
    detection.left_out = left_out;
    for candidate in candidates {
        let (menu, refusals) = menu_judge.judge_candidate(candidate);
        // Candidates with a refusal are returned, too, so that the user can see why a menu was not recognized.
        if refusals.is_empty() {
            detection.left_out += push_bounded(&mut detection.menus, menu, MAX_KEPT);
        } else {
            detection.left_out +=
                push_bounded(&mut detection.rejected, RejectedMenu { menu, because: refusals }, MAX_KEPT);
        }
    }
    detection.left_out += drop_oldest(&mut detection.menus, MAX_KEPT) + drop_oldest(&mut detection.rejected, MAX_KEPT);
    // Questions come last, since a line of a menu must not be asked again.
    detection.questions = question::find_questions(&markdown, end_index, &detection, &menu_judge.reviewed_flags);
    detection
}

/// A text without terminal colours: agents print them around the very keys that are searched. Line breaks stay.
fn strip_colours(message_text: &str) -> Cow<'_, str> {
    if !message_text.contains('\u{1b}') {
        return Cow::Borrowed(message_text);
    }
    let mut plain_text = String::with_capacity(message_text.len());
    let mut remaining_characters = message_text.chars().peekable();
    while let Some(character) = remaining_characters.next() {
        match character {
            '\u{1b}' if remaining_characters.next_if_eq(&'[').is_some() => {
                // The sequence ends with a letter; a broken one must not swallow the next line.
                while let Some(character) = remaining_characters.next_if(|character| *character != '\n') {
                    if character.is_ascii_alphabetic() {
                        break;
                    }
                }
            }
            '\u{1b}' => {}
            character => plain_text.push(character),
        }
    }
    Cow::Owned(plain_text)
}

/// The candidates of a page, and how many earlier ones were dropped.
fn find_candidates(markdown: &MarkdownPage<'_>) -> (Vec<MenuCandidate>, usize) {
    let (groups, dropped_count) = group::find_groups(markdown);
    let mut candidates = numbered::merge_lists(markdown, groups);
    candidates.extend(bold_choices::find_choices(markdown));
    candidates.sort_by_key(|candidate| candidate.first_index);
    (candidates, dropped_count)
}

fn build_menu(markdown: &MarkdownPage<'_>, candidate: MenuCandidate) -> Menu {
    let line_number = |index: usize| markdown.lines.get(index).map_or(0, |line| line.number);
    Menu {
        shape: candidate.menu_shape(),
        lines: line_number(candidate.first_index)..line_number(candidate.last_index) + 1,
        options: candidate.options,
        score: 0,
        reasons: Vec::new(),
    }
}

/// Adds an item; the list grows to twice the limit before it is cut, so that cutting costs little.
fn push_bounded<T>(kept_items: &mut Vec<T>, item: T, max_kept: usize) -> usize {
    kept_items.push(item);
    if kept_items.len() < 2 * max_kept { 0 } else { drop_oldest(kept_items, max_kept) }
}

fn drop_oldest<T>(kept_items: &mut Vec<T>, max_kept: usize) -> usize {
    kept_items.drain(..kept_items.len().saturating_sub(max_kept)).count()
}

/// Judges candidates with everything that is known about the page.
struct MenuJudge<'p, 't> {
    markdown: &'p MarkdownPage<'t>,
    /// The index behind the last line that is not blank.
    end_index: usize,
    /// Whether each line is under review.
    reviewed_flags: Vec<bool>,
}

impl MenuJudge<'_, '_> {
    /// Scores a candidate and collects the reasons why it is no menu.
    fn judge_candidate(&self, candidate: MenuCandidate) -> (Menu, Vec<MenuRefusal>) {
        let mut refusals = candidate.refusals.clone();
        refusals.extend(self.placement_refusals(&candidate));
        // Numbered references with addresses look exactly like a numbered menu.
        let is_address =
            |option: &MenuChoice| ["http://", "https://"].iter().any(|start| option.label.starts_with(start));
        if candidate.options.iter().any(is_address) && !refusals.contains(&MenuRefusal::Footnote) {
            refusals.push(MenuRefusal::Footnote);
        }
        // An agent that waits for an answer shows its menu last.
        let is_at_end = candidate.last_index + END_LINES >= self.end_index;
        let mark_against = self.find_mark_against(&candidate);
        let has_known_keys = known_shapes::has_known_shape(&candidate);
        let mut menu = build_menu(self.markdown, candidate);
        // The exit of a party is the only menu with a single option.
        if menu.shape == MenuShape::Exit {
            refusals.retain(|refusal| *refusal != MenuRefusal::OneOption);
        }
        let menu_shape = menu.shape;
        let has_structure = !refusals.contains(&MenuRefusal::OneOption);
        // Every part of the score is listed, also with zero points, so that the user can follow the sum.
        let mut add_reason =
            |points: i32, explanation: String| menu.reasons.push(MenuScoreReason { points, why: explanation });
        match has_structure {
            true if menu_shape == MenuShape::Named => add_reason(40, "choices in bold".into()),
            true => add_reason(40, "keys in brackets, each with an option".into()),
            false => add_reason(0, "not structured like a menu".into()),
        }
        match is_at_end {
            true => add_reason(30, format!("in the last {END_LINES} lines")),
            false => add_reason(0, format!("not in the last {END_LINES} lines")),
        }
        match has_known_keys {
            true => add_reason(20, "known shape".into()),
            false => add_reason(0, "unknown shape".into()),
        }
        match mark_against {
            None if refusals.is_empty() => add_reason(10, "nothing against it".into()),
            None => add_reason(0, "evidence against it".into()),
            Some(mark_text) => add_reason(0, mark_text.into()),
        }
        let total_points: i32 =
            menu.reasons.iter().fold(0, |total_points, reason| total_points.saturating_add(reason.points));
        menu.score = u32::try_from(total_points).unwrap_or(0);
        // A refusal explains more than a low score, so the score is only named if there is none.
        if refusals.is_empty() && menu.score < MIN_SCORE {
            refusals.push(MenuRefusal::Score);
        }
        refusals.sort_unstable();
        refusals.dedup();
        (menu, refusals)
    }

    /// The refusals that follow from where the candidate stands.
    fn placement_refusals(&self, candidate: &MenuCandidate) -> Vec<MenuRefusal> {
        let mut refusals = Vec::new();
        let candidate_lines = self.markdown.lines.get(candidate.first_index..=candidate.last_index).unwrap_or_default();
        for line in candidate_lines.iter().filter(|line| !line.is_blank()) {
            refusals.extend(match line.kind {
                MarkdownLineKind::Code => Some(MenuRefusal::Code),
                MarkdownLineKind::Comment => Some(MenuRefusal::Comment),
                MarkdownLineKind::FrontMatter => Some(MenuRefusal::FrontMatter),
                MarkdownLineKind::Prose => line_scan::is_quoted(line.text).then_some(MenuRefusal::Quote),
            });
        }
        // A single line under review is enough: the menu may be quoted in part.
        let line_flags = self.reviewed_flags.get(candidate.first_index..=candidate.last_index).unwrap_or_default();
        if line_flags.contains(&true) {
            refusals.push(MenuRefusal::Reviewed);
        }
        if line_scan::is_example(&candidate.lead_text) || self.follows_example(candidate.first_index) {
            refusals.push(MenuRefusal::Example);
        }
        refusals
    }

    /// Whether the lines above say that an example follows. The search goes up over blank lines and prompts; any other line
    /// ends it.
    fn follows_example(&self, first_index: usize) -> bool {
        let lines_above = self.markdown.lines.get(..first_index).unwrap_or_default();
        for line in lines_above.iter().rev().take(6).filter(|line| !line.is_blank()) {
            let title = line.heading().map(|(_, title)| title);
            if line_scan::is_example(title.unwrap_or(line.text)) {
                return true;
            }
            if title.is_some() || line.kind == MarkdownLineKind::Code || !line_scan::is_prompt(line.text) {
                return false;
            }
        }
        false
    }

    /// A mark against the candidate that costs points but does not decide.
    fn find_mark_against(&self, candidate: &MenuCandidate) -> Option<&'static str> {
        let candidate_lines = self.markdown.lines.get(candidate.first_index..=candidate.last_index).unwrap_or_default();
        if candidate_lines.iter().filter(|line| !line.is_blank()).all(|line| line.text.trim_start().starts_with('|')) {
            return Some("inside a table");
        }
        // A few lines may follow a menu, such as a hint how to answer; more text means that the agent went on.
        let lines_below = self.markdown.lines.get(candidate.last_index + 1..).unwrap_or_default();
        let lines_after = lines_below.iter().filter(|line| !line.is_blank()).take(6).count();
        if lines_after > 5 {
            return Some("more text follows it");
        }
        let are_unlabelled = candidate.options.iter().all(|option| option.label.is_empty());
        (are_unlabelled && !known_shapes::has_known_shape(candidate)).then_some("the options have no labels")
    }
}

/// Whether each line is under review.
fn mark_reviewed_lines(markdown: &MarkdownPage<'_>, context: &MenuContext) -> Vec<bool> {
    let mut line_flags = vec![false; markdown.lines.len()];
    // The caller's ranges may be out of bounds or reversed.
    for line_range in &context.reviewed_lines {
        let start_index = line_range.start.saturating_sub(1).min(line_flags.len());
        let end_index = line_range.end.saturating_sub(1).clamp(start_index, line_flags.len());
        line_flags[start_index..end_index].fill(true);
    }
    for (opening_mark, closing_mark) in
        context.review_fences.iter().filter(|(opening_mark, _)| !opening_mark.trim().is_empty())
    {
        let mut is_inside = false;
        for (line, line_flag) in markdown.lines.iter().zip(&mut line_flags) {
            // If the same mark opens and closes, it does so in turns.
            let line_text = line.text.trim();
            let opens = !is_inside && line_text == opening_mark.trim();
            let closes = is_inside && line_text == closing_mark.trim();
            *line_flag |= is_inside || opens;
            is_inside = (is_inside || opens) && !closes;
        }
    }
    line_flags
}
