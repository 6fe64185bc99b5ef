//! Groups lines with keys in brackets into candidates for menus, and finds mistakes in their structure. Where a candidate
//! stands, and what that means, is judged by the caller.

use std::collections::HashSet;

use super::{
    ChoiceMeaning, MAX_CANDIDATES, MenuChoice, MenuRefusal, MenuShape, known_shapes,
    line_scan::{self, KeyMark, KeyMarkKind, LineLead},
    push_bounded,
};
use crate::markdown::{MarkdownLine, MarkdownLineKind, MarkdownPage};

/// A candidate with more options is something else, and the rest is not kept.
const MAX_OPTIONS: usize = 40;

/// A group of options that may be a menu.
#[derive(Clone, Debug)]
pub(super) struct MenuCandidate {
    pub layout: CandidateLayout,
    pub options: Vec<MenuChoice>,
    /// The indexes of the first and the last line.
    pub first_index: usize,
    pub last_index: usize,
    /// The text that leads to it, on its line or on the one above.
    pub lead_text: String,
    pub refusals: Vec<MenuRefusal>,
}

/// How the options of a candidate are arranged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CandidateLayout {
    Vertical,
    Horizontal,
    Glued,
    Trailing,
    /// A numbered list `1. …`, `2. …`.
    NumberedList,
    Elicitation,
    /// A list of choices in bold.
    Named,
}

impl MenuCandidate {
    pub fn menu_shape(&self) -> MenuShape {
        match (self.layout, self.options.as_slice()) {
            (CandidateLayout::Elicitation, _) => MenuShape::Elicitation,
            (_, [only_option]) if is_party_exit(only_option) => MenuShape::Exit,
            (_, [_]) => MenuShape::Lone,
            (CandidateLayout::NumberedList, _) => MenuShape::Numbered,
            (CandidateLayout::Named, _) => MenuShape::Named,
            (CandidateLayout::Glued, _) => MenuShape::Glued,
            (CandidateLayout::Trailing, _) => MenuShape::Trailing,
            _ if known_shapes::sorted_keys(self) == "NVY" => MenuShape::Iteration,
            (_, options) if options.iter().all(|option| option.key.parse::<u32>().is_ok()) => MenuShape::Numbered,
            (CandidateLayout::Horizontal, _) => MenuShape::Horizontal,
            (CandidateLayout::Vertical, _) => MenuShape::Vertical,
        }
    }
}

/// Whether an option leaves a party; nothing else with one option is a menu.
fn is_party_exit(option: &MenuChoice) -> bool {
    option.key.eq_ignore_ascii_case("e") && option.meaning == ChoiceMeaning::Exit
}

/// The candidates of a page in the order of their lines, and how many of the first ones were dropped because there are too
/// many.
pub(super) fn find_groups(markdown: &MarkdownPage<'_>) -> (Vec<MenuCandidate>, usize) {
    let mut group_builder = GroupBuilder { markdown, finished: Vec::new(), dropped_count: 0, open_group: None };
    for (index, markdown_line) in markdown.lines.iter().enumerate() {
        group_builder.read_line(index, markdown_line);
    }
    group_builder.close_group();
    (group_builder.finished, group_builder.dropped_count)
}

/// Collects candidates line by line.
struct GroupBuilder<'p, 't> {
    markdown: &'p MarkdownPage<'t>,
    finished: Vec<MenuCandidate>,
    dropped_count: usize,
    open_group: Option<OpenMenuGroup>,
}

/// Options below each other whose end is not yet known.
struct OpenMenuGroup {
    candidate: MenuCandidate,
    keys: HashSet<String>,
    line_kind: MarkdownLineKind,
    is_quoted: bool,
    all_glued: bool,
    are_checkboxes: bool,
    /// The number of lines since the last option.
    lines_between: usize,
}

/// Options on one line.
struct MenuOptionRow<'a, 't> {
    line_index: usize,
    line: &'a MarkdownLine<'t>,
    marks: &'a [KeyMark<'t>],
    layout: CandidateLayout,
}

impl<'t> GroupBuilder<'_, 't> {
    /// Reads one line: it adds an option, is a row of options, or ends the open group.
    fn read_line(&mut self, line_index: usize, markdown_line: &MarkdownLine<'t>) {
        let key_marks = line_scan::find_marks(markdown_line.text, MAX_OPTIONS + 1);
        // A link or a footnote on the line decides for all of its brackets.
        if let Some(refusal) = non_key_refusal(&key_marks) {
            self.close_group();
            return self.emit_row(
                MenuOptionRow {
                    line_index,
                    line: markdown_line,
                    marks: &key_marks,
                    layout: CandidateLayout::Horizontal,
                },
                vec![refusal],
            );
        }
        let line_lead =
            key_marks.first().map(|key_mark| line_scan::classify_lead(&markdown_line.text[..key_mark.start]));
        match (key_marks.as_slice(), line_lead) {
            ([], _) | (_, None) => self.read_between(markdown_line),
            // A line that begins with its only key is one option of a vertical menu.
            ([only_mark], Some(LineLead::Start | LineLead::Bullet)) => {
                self.add_option(line_index, markdown_line, *only_mark, line_lead == Some(LineLead::Bullet))
            }
            ([only_mark], Some(LineLead::Prompt)) => {
                self.close_group();
                // `stepsCompleted: [1]` offers nothing.
                if only_mark.key.parse::<u32>().is_ok() {
                    return;
                }
                self.add_option(line_index, markdown_line, *only_mark, false);
            }
            // A key in a sentence is only mentioned, and it ends the group above.
            ([_], Some(LineLead::Word | LineLead::Sentence)) => self.close_group(),
            (_, Some(line_lead)) => {
                self.close_group();
                self.read_row(line_index, markdown_line, &key_marks, line_lead);
            }
        }
    }

    /// A blank line may separate two options, and an indented line continues the last one.
    fn read_between(&mut self, markdown_line: &MarkdownLine<'t>) {
        let Some(open_group) = &mut self.open_group else { return };
        open_group.lines_between += 1;
        let continues_group =
            markdown_line.is_blank() || markdown_line.text.starts_with("  ") || markdown_line.text.starts_with('\t');
        if open_group.lines_between > 1 || !continues_group {
            self.close_group();
        }
    }

    /// A line that begins with a key.
    fn add_option(
        &mut self,
        line_index: usize,
        markdown_line: &MarkdownLine<'t>,
        key_mark: KeyMark<'t>,
        is_bullet: bool,
    ) {
        let parsed_label = line_scan::parse_label(key_mark.key, &markdown_line.text[key_mark.end..]);
        let is_checkbox = is_bullet && key_mark.key.eq_ignore_ascii_case("x");
        let in_quote = line_scan::is_quoted(markdown_line.text);
        let is_only_mentioned = is_mentioned(&parsed_label.label);
        // A bracket without any text is no option on its own line.
        if parsed_label.label.is_empty() && parsed_label.about.is_empty() || is_only_mentioned {
            return self.close_group();
        }
        let fits_open_group = self.open_group.as_ref().is_some_and(|open_group| {
            let is_same_place = open_group.line_kind == markdown_line.kind && open_group.is_quoted == in_quote;
            // Numbers and letters are never keys of one menu.
            let same_key_kind =
                open_group.keys.iter().all(|key| key.parse::<u32>().is_ok() == key_mark.key.parse::<u32>().is_ok());
            // A key that occurs again begins a new menu. Ticked boxes repeat theirs, and only another box joins them.
            is_same_place
                && same_key_kind
                && if open_group.are_checkboxes { is_checkbox } else { !open_group.keys.contains(key_mark.key) }
        });
        if !fits_open_group {
            self.close_group();
        }
        let menu_choice = make_choice(key_mark.key, parsed_label.label, parsed_label.about, markdown_line.number);
        let make_lead = || find_lead(self.markdown, line_index, &markdown_line.text[..key_mark.start]);
        let open_group = match &mut self.open_group {
            Some(open_group) => open_group,
            empty_slot => empty_slot.insert(OpenMenuGroup {
                candidate: MenuCandidate {
                    layout: CandidateLayout::Vertical,
                    options: Vec::new(),
                    first_index: line_index,
                    last_index: line_index,
                    lead_text: make_lead(),
                    refusals: Vec::new(),
                },
                keys: HashSet::new(),
                line_kind: markdown_line.kind,
                is_quoted: in_quote,
                all_glued: true,
                are_checkboxes: is_checkbox,
                lines_between: 0,
            }),
        };
        open_group.keys.insert(key_mark.key.to_string());
        // A group is glued only if all of its options are.
        open_group.all_glued &= parsed_label.is_glued;
        open_group.lines_between = 0;
        if open_group.candidate.options.len() <= MAX_OPTIONS {
            open_group.candidate.options.push(menu_choice);
        }
        open_group.candidate.last_index = line_index;
    }

    /// Ends the open group and keeps it as a candidate.
    fn close_group(&mut self) {
        let Some(OpenMenuGroup { mut candidate, all_glued, are_checkboxes, .. }) = self.open_group.take() else {
            return;
        };
        if all_glued {
            candidate.layout = CandidateLayout::Glued;
        }
        if are_checkboxes {
            candidate.refusals.push(MenuRefusal::Checkbox);
        }
        self.finish_candidate(candidate);
    }

    /// A line with several keys.
    fn read_row(
        &mut self,
        line_index: usize,
        markdown_line: &MarkdownLine<'t>,
        key_marks: &[KeyMark<'t>],
        line_lead: LineLead,
    ) {
        let line_text = markdown_line.text;
        let after_marks = key_marks.last().map_or("", |key_mark| &line_text[key_mark.end..]);
        let before_marks = key_marks.first().map_or("", |key_mark| &line_text[..key_mark.start]);
        // `Continue [c] or Edit [e]?` names each key before its bracket, so the sentence is a menu.
        let has_leading_names = matches!(line_lead, LineLead::Sentence)
            && line_scan::is_sentence_end(after_marks)
            && all_named_before(line_text, key_marks);
        let layout = match () {
            () if is_elicitation(key_marks, before_marks) => CandidateLayout::Elicitation,
            () if has_leading_names => CandidateLayout::Trailing,
            () => CandidateLayout::Horizontal,
        };
        let mut refusals = Vec::new();
        if line_lead == LineLead::Sentence && !has_leading_names {
            refusals.push(MenuRefusal::Sentence);
        }
        self.emit_row(MenuOptionRow { line_index, line: markdown_line, marks: key_marks, layout }, refusals);
    }

    /// Turns a row of options into a candidate.
    fn emit_row(&mut self, option_row: MenuOptionRow<'_, 't>, mut refusals: Vec<MenuRefusal>) {
        let MenuOptionRow { line_index, line: markdown_line, marks: key_marks, layout } = option_row;
        let mut all_glued = true;
        let mut options = Vec::with_capacity(key_marks.len());
        let mut label_start = 0;
        for (mark_position, key_mark) in key_marks.iter().enumerate() {
            let label_end = key_marks.get(mark_position + 1).map_or(markdown_line.text.len(), |next| next.start);
            if layout == CandidateLayout::Trailing {
                let label_text = line_scan::parse_label_before(&markdown_line.text[label_start..key_mark.start]);
                options.push(make_choice(key_mark.key, label_text, String::new(), markdown_line.number));
            } else {
                let parsed_label = line_scan::parse_label(key_mark.key, &markdown_line.text[key_mark.end..label_end]);
                all_glued &= parsed_label.is_glued;
                // A key in parentheses, or one that is followed by `option`, is only mentioned.
                if parsed_label.is_closed || is_mentioned(&parsed_label.label) {
                    refusals.push(MenuRefusal::Sentence);
                }
                options.push(make_choice(key_mark.key, parsed_label.label, parsed_label.about, markdown_line.number));
            }
            label_start = key_mark.end;
        }
        let before_marks = key_marks.first().map_or("", |key_mark| &markdown_line.text[..key_mark.start]);
        // `Choose [1], [2] or …` refers to a list; if there is one, the list is the menu.
        let is_reference = |key_mark: &KeyMark<'_>| {
            key_mark.key.parse::<u32>().is_ok() && markdown_line.text[key_mark.end..].starts_with([',', ')', ':'])
        };
        if before_marks.contains(char::is_alphanumeric) && key_marks.iter().any(is_reference) {
            return;
        }
        let layout = if layout == CandidateLayout::Horizontal && all_glued { CandidateLayout::Glued } else { layout };
        let lead_text = find_lead(self.markdown, line_index, before_marks);
        self.finish_candidate(MenuCandidate {
            layout,
            options,
            first_index: line_index,
            last_index: line_index,
            lead_text,
            refusals,
        });
    }

    /// Checks the structure of a candidate and keeps it, with its refusals.
    fn finish_candidate(&mut self, mut candidate: MenuCandidate) {
        let distinct_keys: HashSet<&str> = candidate.options.iter().map(|option| option.key.as_str()).collect();
        if candidate.options.len() > MAX_OPTIONS {
            candidate.refusals.push(MenuRefusal::Many);
        }
        let is_checkbox_list = candidate.refusals.contains(&MenuRefusal::Checkbox);
        if distinct_keys.len() < candidate.options.len() && !is_checkbox_list {
            candidate.refusals.push(MenuRefusal::SameKeyTwice);
        }
        if candidate.options.len() < 2 {
            candidate.refusals.push(MenuRefusal::OneOption);
        }
        if is_placeholder(&candidate) {
            candidate.refusals.push(MenuRefusal::Placeholder);
        }
        if is_instruction(&candidate) {
            candidate.refusals.push(MenuRefusal::Instruction);
        }
        // Keys without labels get their meaning last, since it depends on all keys of the menu.
        let sorted_letters = known_shapes::sorted_keys(&candidate);
        for option in candidate.options.iter_mut().filter(|option| option.label.is_empty()) {
            option.meaning = ChoiceMeaning::from_key(&option.key, &sorted_letters);
        }
        candidate.refusals.sort_unstable();
        candidate.refusals.dedup();
        self.dropped_count += push_bounded(&mut self.finished, candidate, MAX_CANDIDATES);
    }
}

pub(super) fn make_choice(key: &str, label: String, about: String, markdown_line: usize) -> MenuChoice {
    MenuChoice { key: key.to_string(), meaning: ChoiceMeaning::from_label(&label), label, about, line: markdown_line }
}

/// The text before the first key, otherwise the nearest line above.
pub(super) fn find_lead(markdown: &MarkdownPage<'_>, line_index: usize, text_before: &str) -> String {
    if text_before.contains(char::is_alphanumeric) {
        return truncate(text_before);
    }
    let lines_above = markdown.lines.get(..line_index).unwrap_or_default();
    let nearest_line = lines_above.iter().rev().take(3).find(|markdown_line| !markdown_line.is_blank());
    nearest_line.map(|markdown_line| truncate(markdown_line.text)).unwrap_or_default()
}

fn truncate(lead_text: &str) -> String {
    lead_text.trim().chars().take(200).collect()
}

/// The refusal for brackets that are no keys.
fn non_key_refusal(key_marks: &[KeyMark<'_>]) -> Option<MenuRefusal> {
    let first_non_key = key_marks.iter().find(|key_mark| key_mark.kind != KeyMarkKind::Key)?;
    Some(if first_non_key.kind == KeyMarkKind::Link { MenuRefusal::Link } else { MenuRefusal::Footnote })
}

/// Whether a label shows that its key is only mentioned: `[C] continue option presented`.
fn is_mentioned(label: &str) -> bool {
    let mut label_words = label.split_whitespace();
    let starts_lower_case = label.starts_with(char::is_lowercase);
    starts_lower_case && label_words.by_ref().take(2).any(|label_word| matches!(label_word, "option" | "options"))
}

/// Whether every key has a short name before it.
fn all_named_before(line_text: &str, key_marks: &[KeyMark<'_>]) -> bool {
    let mut label_start = 0;
    key_marks.iter().all(|key_mark| {
        let leading_label = line_scan::parse_label_before(&line_text[label_start..key_mark.start]);
        label_start = key_mark.end;
        let word_count = leading_label.split_whitespace().count();
        (1..=4).contains(&word_count)
            && leading_label.starts_with(|character: char| character.is_uppercase() || character.is_numeric())
    })
}

/// Whether a row asks for one of BMAD's elicitation methods: a number or one of these keys.
fn is_elicitation(key_marks: &[KeyMark<'_>], text_before: &str) -> bool {
    let has_key = |key: &str| key_marks.iter().any(|key_mark| key_mark.key.eq_ignore_ascii_case(key));
    key_marks.len() <= 4 && has_key("r") && has_key("x") && text_before.contains("(1-")
}

/// Whether the options are placeholders: `[X] words across [Y] sections`, `[A] [Action]`.
pub(super) fn is_placeholder(candidate: &MenuCandidate) -> bool {
    let options = &candidate.options;
    let has_placeholder_key = |option: &MenuChoice| "NXYZ".contains(option.key.as_str());
    let has_no_meaning = |option: &MenuChoice| matches!(option.meaning, ChoiceMeaning::Other(_));
    let all_placeholders =
        options.iter().all(|option| has_placeholder_key(option) && has_no_meaning(option) && !option.label.is_empty());
    let is_unfilled = |option: &MenuChoice| option.label.starts_with(['[', '{', '<']);
    // One placeholder may be a mistake of the agent; most of the options make it a template.
    all_placeholders || options.iter().filter(|option| is_unfilled(option)).count() * 2 > options.len()
}

/// Whether the options are instructions of a step file to the agent: `- **[a]**: Load and execute …`.
fn is_instruction(candidate: &MenuCandidate) -> bool {
    const VERBS: [&str; 9] =
        ["Load", "Direct", "Execute", "Verify", "Ask", "Invoke", "Read", "Display", "Exit workflow"];
    let is_told = |option: &MenuChoice| {
        let option_text = if option.about.is_empty() { &option.label } else { &option.about };
        VERBS.iter().any(|verb| option_text.starts_with(verb) || option.label.starts_with(verb))
    };
    candidate.layout == CandidateLayout::Vertical
        && candidate.options.len() >= 2
        && candidate.options.iter().filter(|option| is_told(option)).count() * 2 > candidate.options.len()
}
