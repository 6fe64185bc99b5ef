//! Draws a board: lines that fit the width, and never more of them than the height allows.
//!
//! Wide screens show seats side by side, narrow ones a line per seat, tiny ones one line for everything. Symbols and words
//! carry the state; colour only emphasises it.

use tribunal_engine::limits::RunUsage;

use super::{
    board::LiveBoard,
    child_boards::sum_running_usage,
    row::{RowBuilder, first_fitting},
    workers,
};
use crate::{
    DisplayMode,
    kind_reporter::LiveProgress,
    kind_table, phrases,
    style::{Screen, TextStyle},
    terminal_text::{clean_line, display_width},
};

/// From this width on, seats are shown side by side.
const SIDE_BY_SIDE_COLUMNS: usize = 100;
/// Below this width or height there is only one line.
const MIN_COLUMNS: usize = 40;
const MIN_LINES: usize = 6;
/// An operation of the tool itself is shown if it takes longer than this.
const SLOW_OPERATION_MS: u64 = 30_000;
/// Checks and the like are shown if they take longer than this.
const BRIEF_WORK_MS: u64 = 1_000;

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
        let running_boards = self.board.list_running_boards();
        // The user wants to see who works, and that is always the innermost run.
        let innermost = FrameLayout { board: running_boards.last().copied().unwrap_or(self.board), ..*self };
        // Each part has its position on the screen. The list is sorted by importance: the last one is left out first.
        let LiveProgress { position, items, settled, score, shows_child_limits, legend } =
            self.board.run_live.describe_progress(&self.board.run_view);
        let mut other_parts = [
            (3, self.child_lines(&running_boards)),
            (8, self.fitted_lines(settled)),
            (10, self.budget_lines(&running_boards, shows_child_limits)),
            (6, self.decision_lines(&running_boards)),
            (2, self.fitted_lines(position)),
            (0, vec![self.title_line()]),
            (5, self.own_work_lines(&running_boards)),
            (7, innermost.own_operation_lines()),
            (7, self.usage_limit_lines(&running_boards)),
            (9, self.fitted_lines(score)),
            (11, self.footer_lines(legend)),
        ];
        // The user looks for the workers first, so up to a third of the lines is kept for them.
        let worker_lines = innermost.board.workers.worker_count().min(max_lines.div_ceil(3));
        for part_index in (0..other_parts.len()).rev() {
            let line_count: usize = other_parts.iter().map(|(_, part_lines)| part_lines.len()).sum();
            if line_count + worker_lines <= max_lines {
                break;
            }
            other_parts[part_index].1.clear();
        }
        let line_count: usize = other_parts.iter().map(|(_, part_lines)| part_lines.len()).sum();
        // The workers take what is left, because they can be drawn in any height. What is done already comes last.
        let lines_left = max_lines.saturating_sub(line_count);
        let worker_part = workers::draw_workers(&innermost, lines_left, is_wide);
        let item_part = self.item_lines(&items, lines_left.saturating_sub(worker_part.len()));
        let mut all_parts = other_parts.to_vec();
        all_parts.extend([(4, worker_part), (1, item_part)]);
        all_parts.sort_by_key(|(part_position, _)| *part_position);
        let mut frame_lines: Vec<String> = all_parts.into_iter().flat_map(|(_, part_lines)| part_lines).collect();
        frame_lines.truncate(max_lines);
        frame_lines
    }

    /// Draws what is done, one line each. If there is not enough room, the last ones are shown and the others are counted.
    fn item_lines(&self, items: &[String], max_lines: usize) -> Vec<String> {
        let draw_items = |shown_items: &[String]| -> Vec<String> {
            shown_items.iter().map(|item| self.styled_line(TextStyle::Plain, item)).collect()
        };
        if items.len() <= max_lines {
            return draw_items(items);
        }
        // A count alone says nothing that the totals do not say.
        if max_lines < 2 {
            return Vec::new();
        }
        let hidden_count = items.len() + 1 - max_lines;
        let mut item_lines = vec![self.styled_line(TextStyle::Dim, &format!("… {hidden_count} more"))];
        item_lines.extend(draw_items(&items[hidden_count..]));
        item_lines
    }

    /// Draws what the child runs under way are about and how far they are. A child of a child takes one line.
    fn child_lines(&self, running_boards: &[&LiveBoard]) -> Vec<String> {
        let mut child_lines = Vec::new();
        for (depth, child_board) in running_boards.iter().enumerate().skip(1) {
            let run_view = &child_board.run_view;
            let (kind_word, title) = (kind_word_of(child_board), clean_line(&run_view.title()));
            if depth == 1 {
                let run_id = run_view.run_id.as_ref().map_or("", |run_id| run_id.as_str());
                // A title may be long; then at least the run is named.
                let heading = first_fitting(
                    self.columns.saturating_sub(2),
                    [format!("{kind_word} {title} · run {run_id}"), format!("{run_id}: {title}")],
                );
                let heading_row = self.new_row().append(TextStyle::Plain, "● ").append(TextStyle::Bold, &heading);
                child_lines.push(heading_row.finish());
            }
            let lead = if depth == 1 { "  ".to_string() } else { format!("  {kind_word}: ") };
            let mut line_forms = child_board.run_live.describe_progress(run_view).position;
            if line_forms.is_empty() {
                line_forms.extend(child_board.run_live.describe_stage(&child_board.workers).map(|stage| stage.text));
            }
            let line_text = first_fitting(self.columns.saturating_sub(display_width(&lead)), line_forms);
            child_lines.push(self.styled_line(TextStyle::Plain, &(lead + &line_text)));
        }
        child_lines
    }

    /// Draws the title with the run and the mode.
    fn title_line(&self) -> String {
        let run_view = &self.board.run_view;
        let subject_title = clean_line(&run_view.title());
        let kind_word = kind_word_of(self.board);
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

    /// Draws the checks, commits and the like that the runs are at, like the line of a worker.
    fn own_work_lines(&self, running_boards: &[&LiveBoard]) -> Vec<String> {
        let mut work_lines = Vec::new();
        for board in running_boards {
            let now_ms = board.awake_ms;
            // What is over at once would only flicker.
            let lasting_work =
                board.project_work.iter().find(|work| now_ms.saturating_sub(work.started_ms) >= BRIEF_WORK_MS);
            work_lines.extend(lasting_work.map(|work| workers::own_work_line(self, work, now_ms)));
        }
        work_lines
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
    fn usage_limit_lines(&self, running_boards: &[&LiveBoard]) -> Vec<String> {
        let awaited_resets = running_boards.iter().flat_map(|board| {
            let wall_ms = board.estimate_wall_ms();
            board.run_view.limited_agents().map(move |(agent_name, until_ms)| (agent_name, until_ms, wall_ms))
        });
        awaited_resets
            .map(|(agent_name, until_ms, wall_ms)| {
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
    fn decision_lines(&self, running_boards: &[&LiveBoard]) -> Vec<String> {
        let mut open_decisions = running_boards
            .iter()
            .flat_map(|board| board.run_view.open_decisions().map(move |decision| (board, decision)));
        let Some((asking_board, first_decision)) = open_decisions.next() else { return Vec::new() };
        // Only one question fits; the others are counted.
        let more_text = match open_decisions.count() {
            0 => String::new(),
            more_count => format!(" (and {more_count} more)"),
        };
        // A question of a child run is answered with the id of that run.
        let child_text = match (&asking_board.run_view.parent, &asking_board.run_view.run_id) {
            (Some(_), Some(run_id)) if running_boards.len() > 1 => format!("{run_id}."),
            _ => String::new(),
        };
        let question = clean_line(&first_decision.question);
        let decision_text = format!("? {child_text}{} needs an answer{more_text}: {question}", first_decision.id);
        vec![self.styled_line(TextStyle::Warning, &decision_text)]
    }

    /// Draws what is used of the limits: `31k tokens · $0.41 of $5.00 · 2:13 of 2:00:00`. If the child run has limits of its
    /// own, they come first, and each line says whose limits they are.
    fn budget_lines(&self, running_boards: &[&LiveBoard], shows_child_limits: bool) -> Vec<String> {
        let own_budget = describe_budget(self.board, &sum_running_usage(running_boards));
        let child_budget = running_boards.get(1).filter(|_| shows_child_limits).and_then(|child_board| {
            let budget_text = describe_budget(child_board, &sum_running_usage(&running_boards[1..]))?;
            Some(format!("{} limits: {budget_text}", kind_word_of(child_board)))
        });
        let own_budget = own_budget.map(|budget_text| match &child_budget {
            Some(_) => format!("{} limits: {budget_text}", kind_word_of(self.board)),
            None => budget_text,
        });
        let budget_texts = child_budget.into_iter().chain(own_budget);
        budget_texts.map(|budget_text| self.styled_line(TextStyle::Plain, &budget_text)).collect()
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
        let has_stalled = board.list_running_boards().iter().any(|board| board.workers.has_stalled(board.awake_ms));
        let (mark_text, mark_style) = match has_stalled {
            true => ("! ", TextStyle::Warning),
            false => ("▸ ", TextStyle::Bold),
        };
        let status_text = first_fitting(self.columns.saturating_sub(2), describe_status(board));
        self.new_row().append(mark_style, mark_text).append(TextStyle::Plain, &status_text).finish()
    }
}

/// The word for the kind of a run.
fn kind_word_of(board: &LiveBoard) -> &'static str {
    board.run_view.order.as_ref().map_or("run", kind_table::kind_word)
}

/// Describes what a run has used of its limits; `None` before it has started.
fn describe_budget(board: &LiveBoard, spent: &RunUsage) -> Option<String> {
    let limits = board.current_limits()?;
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
    budget_parts.push(format!("{} of {limit_text}", phrases::format_duration(board.awake_ms)));
    Some(budget_parts.join(" · "))
}

/// Describes a run in one line, from the fullest form to the shortest.
fn describe_status(board: &LiveBoard) -> Vec<String> {
    let run_view = &board.run_view;
    let running_boards = board.list_running_boards();
    let innermost_child = running_boards[1..].last();
    let stage = board.run_live.describe_stage(&board.workers);
    let (place, short_place) =
        stage.as_ref().map_or(("", ""), |stage| (stage.place.as_str(), stage.short_place.as_str()));
    let stage_text = match &stage {
        _ if !board.is_running() => "ended".to_string(),
        _ if board.controls.is_stopping => "stopping".to_string(),
        Some(stage) => {
            let child_stage = innermost_child.and_then(|child| child.run_live.describe_stage(&child.workers));
            child_stage.map_or_else(|| stage.text.clone(), |child| join_words(&child.place, &child.text))
        }
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
    let usage_text = phrases::describe_usage_so_far(&sum_running_usage(&running_boards));
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
