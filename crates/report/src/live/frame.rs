//! Draws a board: lines that fit the width, and never more of them than the height allows.
//!
//! Wide screens show seats side by side, narrow ones a line per seat, tiny ones one line for everything. Symbols and words
//! carry the state; colour only emphasises it.

use super::{
    board::LiveBoard,
    row::{RowBuilder, first_fitting},
    workers,
};
use crate::{
    DisplayMode,
    kind_reporter::LiveProgress,
    kind_table, phrases,
    style::{Screen, TextStyle},
    terminal_text::clean_line,
};

/// From this width on, seats are shown side by side.
const SIDE_BY_SIDE_COLUMNS: usize = 100;
/// Below this width or height there is only one line.
const MIN_COLUMNS: usize = 40;
const MIN_LINES: usize = 6;
/// An operation of the tool itself is shown if it takes longer than this.
const SLOW_OPERATION_MS: u64 = 30_000;

impl LiveBoard {
    /// Draws the live region. No line is wider than the screen, and there are at most `max_lines` of them.
    pub fn draw_frame(&self, screen: &Screen, max_lines: usize) -> Vec<String> {
        let screen_columns = screen.max_columns.unwrap_or(80);
        // The last column stays free: a terminal that has filled it is about to wrap.
        let layout = FrameLayout { board: self, screen, columns: screen_columns.saturating_sub(1) };
        if max_lines == 0 {
            Vec::new()
        } else if screen_columns < MIN_COLUMNS || max_lines < MIN_LINES || self.controls.mode == DisplayMode::Silent {
            vec![layout.status_line()]
        } else {
            layout.draw_all_parts(max_lines, screen_columns >= SIDE_BY_SIDE_COLUMNS)
        }
    }
}

/// A board and the room to draw it in.
pub(super) struct FrameLayout<'a> {
    pub board: &'a LiveBoard,
    pub screen: &'a Screen,
    /// The number of columns that may be used.
    pub columns: usize,
}

impl FrameLayout<'_> {
    pub(super) fn new_row(&self) -> RowBuilder<'_> {
        RowBuilder::new(self.screen, self.columns)
    }

    /// Draws one line in one style.
    fn styled_line(&self, style: TextStyle, line_text: &str) -> String {
        self.new_row().append(style, line_text).finish()
    }

    /// Draws all parts that fit, in the order of their positions.
    fn draw_all_parts(&self, max_lines: usize, is_wide: bool) -> Vec<String> {
        // Each part has its position on the screen. The list is sorted by importance: the last one is left out first.
        let LiveProgress { position, settled, score, legend } =
            self.board.run_live.describe_progress(&self.board.run_view);
        let mut other_parts = [
            (5, self.fitted_lines(settled)),
            (7, self.budget_lines()),
            (3, self.decision_lines()),
            (1, self.fitted_lines(position)),
            (0, vec![self.title_line()]),
            (4, self.own_operation_lines()),
            (4, self.usage_limit_lines()),
            (6, self.fitted_lines(score)),
            (8, self.footer_lines(legend)),
        ];
        // The user looks for the workers first, so up to a third of the lines is kept for them.
        let worker_lines = self.board.workers.worker_count().min(max_lines.div_ceil(3));
        for part_index in (0..other_parts.len()).rev() {
            let line_count: usize = other_parts.iter().map(|(_, part_lines)| part_lines.len()).sum();
            if line_count + worker_lines <= max_lines {
                break;
            }
            other_parts[part_index].1.clear();
        }
        let line_count: usize = other_parts.iter().map(|(_, part_lines)| part_lines.len()).sum();
        // The workers take what is left, because they can be drawn in any height.
        let mut all_parts = other_parts.to_vec();
        all_parts.push((2, workers::draw_workers(self, max_lines.saturating_sub(line_count), is_wide)));
        all_parts.sort_by_key(|(part_position, _)| *part_position);
        let mut frame_lines: Vec<String> = all_parts.into_iter().flat_map(|(_, part_lines)| part_lines).collect();
        frame_lines.truncate(max_lines);
        frame_lines
    }

    /// Draws the title with the run and the mode.
    fn title_line(&self) -> String {
        let run_view = &self.board.run_view;
        let subject_title = clean_line(&run_view.title());
        let kind_word = run_view.order.as_ref().map_or("run", kind_table::kind_word);
        let short_subject = subject_title.rsplit('/').next().unwrap_or_default().to_string();
        let run_id = run_view.run_id.as_ref().map_or("", |run_id| run_id.as_str());
        let mode_name = self.board.controls.mode;
        // The directory is the first thing to go, then the words.
        let title_text = first_fitting(
            self.columns.saturating_sub(3),
            [
                format!("{kind_word} of {subject_title} · run {run_id} · {mode_name}"),
                format!("{kind_word} of {short_subject} · run {run_id} · {mode_name}"),
                format!("{short_subject} · {run_id} · {mode_name}"),
            ],
        );
        // The line separates the region from the log, even without colour.
        self.new_row()
            .append(TextStyle::Dim, "── ")
            .append(TextStyle::Bold, &title_text)
            .fill_with_rule(TextStyle::Dim)
            .finish()
    }

    /// Draws the first form that fits, or no line if there is none.
    fn fitted_lines(&self, line_forms: Vec<String>) -> Vec<String> {
        if line_forms.is_empty() {
            return Vec::new();
        }
        vec![self.styled_line(TextStyle::Plain, &first_fitting(self.columns, line_forms))]
    }

    /// Draws what the tool itself is doing, if that takes long and is why nothing else moves.
    fn own_operation_lines(&self) -> Vec<String> {
        let Some((operation, started_ms)) = self.board.own_operation else { return Vec::new() };
        let elapsed_ms = self.board.awake_ms.saturating_sub(started_ms);
        if elapsed_ms < SLOW_OPERATION_MS {
            return Vec::new();
        }
        vec![self.styled_line(
            TextStyle::Warning,
            &format!("! still {operation} ({})", phrases::format_duration(elapsed_ms)),
        )]
    }

    /// Draws the usage limits that are waited for, with the time that is left.
    fn usage_limit_lines(&self) -> Vec<String> {
        let wall_ms = self.board.estimate_wall_ms();
        let awaited_resets = self.board.run_view.limited_agents();
        awaited_resets
            .map(|(agent_name, until_ms)| {
                let time_left = phrases::format_duration(until_ms.saturating_sub(wall_ms));
                let line_forms = [
                    phrases::describe_usage_limit(agent_name, until_ms, wall_ms),
                    format!("{agent_name} hit its usage limit; {time_left} left"),
                    format!("{agent_name}: usage limit, {time_left} left"),
                ];
                let limit_text = first_fitting(self.columns.saturating_sub(2), line_forms);
                self.styled_line(TextStyle::Warning, &format!("! {limit_text}"))
            })
            .collect()
    }

    /// Draws the first open decision and the number of the others.
    fn decision_lines(&self) -> Vec<String> {
        let mut open_decisions = self.board.run_view.open_decisions();
        let Some(first_decision) = open_decisions.next() else { return Vec::new() };
        // Only one question fits; the others are counted.
        let more_text = match open_decisions.count() {
            0 => String::new(),
            more_count => format!(" (and {more_count} more)"),
        };
        let decision_text =
            format!("? {} needs an answer{more_text}: {}", first_decision.id, clean_line(&first_decision.question));
        vec![self.styled_line(TextStyle::Warning, &decision_text)]
    }

    /// Draws what is used of the limits: `31k tokens · $0.41 of $5.00 · 2:13 of 2:00:00`.
    fn budget_lines(&self) -> Vec<String> {
        let Some(limits) = self.board.current_limits() else { return Vec::new() };
        let spent = self.board.run_view.total_usage();
        let mut budget_parts = Vec::new();
        // Only tokens without a reported cost count against the token limit; the others count against the cost limit.
        budget_parts.push(match spent.uncosted_tokens {
            0 => format!("{} tokens", phrases::abbreviate_count(spent.tokens)),
            uncosted_tokens => {
                let limit_text = phrases::abbreviate_count(limits.tokens);
                format!("{} of {limit_text} tokens", phrases::abbreviate_count(uncosted_tokens))
            }
        });
        let paid_cost = spent.usage_totals().paid_cost();
        if paid_cost.0 > 0 || spent.uncosted_tokens == 0 {
            budget_parts.push(format!("{} of {}", phrases::format_cost(paid_cost), phrases::format_cost(limits.cost)));
        }
        if spent.notional.0 > 0 {
            budget_parts.push(format!("{} at list price", phrases::format_cost(spent.notional)));
        }
        let limit_text = phrases::format_duration(limits.runtime_ms);
        budget_parts.push(format!("{} of {limit_text}", phrases::format_duration(self.board.awake_ms)));
        vec![self.styled_line(TextStyle::Plain, &budget_parts.join(" · "))]
    }

    /// Draws the keys, and their explanation if the user asked for it.
    fn footer_lines(&self, legend: &str) -> Vec<String> {
        let controls = &self.board.controls;
        let line_forms = if controls.is_stopping {
            ["stopping after the current tasks; press Ctrl-C to stop now", "stopping; Ctrl-C to stop now"]
        } else if controls.reads_keys {
            ["1-4 or v: detail level · s: stop · ?: help", "1-4: detail · s: stop · ?: help"]
        } else {
            ["Ctrl-C: stop after the current tasks", "Ctrl-C: stop"]
        };
        let mut help_lines =
            vec![self.styled_line(TextStyle::Dim, &first_fitting(self.columns, line_forms.map(String::from)))];
        if controls.shows_help {
            let mode_names =
                DisplayMode::ALL.iter().enumerate().map(|(mode_index, mode)| format!("{} {mode}", mode_index + 1));
            let modes_text = mode_names.collect::<Vec<_>>().join(" · ");
            for help_text in [
                format!("{modes_text} · v: next level"),
                "s: stop after the current tasks, resume later · Ctrl-C twice: stop now".to_string(),
                phrases::join_parts([legend, "! no output for a minute"]),
            ] {
                help_lines.push(self.styled_line(TextStyle::Dim, &help_text));
            }
        }
        help_lines
    }

    /// Draws everything in one line, for tiny screens and for the silent mode.
    fn status_line(&self) -> String {
        let board = self.board;
        // One stalled worker is enough to raise the warning.
        let (mark_text, mark_style) = match board.workers.has_stalled(board.awake_ms) {
            true => ("! ", TextStyle::Warning),
            false => ("▸ ", TextStyle::Bold),
        };
        let status_text = first_fitting(self.columns.saturating_sub(2), describe_status(board));
        self.new_row().append(mark_style, mark_text).append(TextStyle::Plain, &status_text).finish()
    }
}

/// Describes a run in one line, from the fullest form to the shortest.
fn describe_status(board: &LiveBoard) -> Vec<String> {
    let run_view = &board.run_view;
    let stage = board.run_live.describe_stage(&board.workers);
    let (place, short_place) =
        stage.as_ref().map_or(("", ""), |stage| (stage.place.as_str(), stage.short_place.as_str()));
    let stage_text = match &stage {
        _ if !board.is_running() => "ended".to_string(),
        _ if board.controls.is_stopping => "stopping".to_string(),
        Some(stage) => stage.text.clone(),
        None => "starting".to_string(),
    };
    let items = kind_table::find_result(run_view).and_then(|result| kind_table::count_items(&result));
    let open_text = items.map(|items| format!("{} open", items.open)).unwrap_or_default();
    let items_text = items.map(|items| format!("{} open, {} fixed", items.open, items.fixed)).unwrap_or_default();
    let questions_text = match run_view.open_decisions().count() {
        0 => String::new(),
        question_count => format!("{} for you", phrases::format_count(question_count as u32, "question")),
    };
    let elapsed_text = phrases::format_duration(board.awake_ms);
    let usage_text = phrases::describe_usage_so_far(&run_view.total_usage());
    let run_id = run_view.run_id.as_ref().map_or("", |run_id| run_id.as_str());
    let (placed_stage, briefly_placed_stage) = (join_words(place, &stage_text), join_words(short_place, &stage_text));
    vec![
        phrases::join_parts([run_id, &placed_stage, &items_text, &questions_text, &usage_text, &elapsed_text]),
        phrases::join_parts([placed_stage.as_str(), &items_text, &questions_text, &elapsed_text]),
        phrases::join_parts([placed_stage.as_str(), &open_text, &questions_text]),
        phrases::join_parts([placed_stage.as_str(), &open_text]),
        phrases::join_parts([briefly_placed_stage.as_str(), &open_text]),
        briefly_placed_stage,
        stage_text,
    ]
}

/// Puts the place of a stage before it, if there is one: `round 1/3 reviewing`.
pub(super) fn join_words(place: &str, stage_text: &str) -> String {
    if place.is_empty() { stage_text.to_string() } else { format!("{place} {stage_text}") }
}
