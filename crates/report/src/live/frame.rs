//! Draws a board: lines that fit the width, and never more of them than the height allows.
//!
//! Wide screens show seats side by side, narrow ones a line per seat, tiny ones one line for everything. Symbols and words
//! carry the state; colour only emphasises it.

use tribunal_core::{
    engine::limits::Cost,
    review::finding::{FindingStatus, Severity},
};

use super::{
    board::{LiveBoard, LiveStage, RoundProgress},
    row::{RowBuilder, first_fitting},
    workers,
};
use crate::{
    DisplayMode, phrases,
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
/// The maximum length of a bar; longer ones say no more.
const MAX_BAR_CELLS: u32 = 9;

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
        let mut other_parts = [
            (5, self.fixed_lines()),
            (7, self.budget_lines()),
            (3, self.decision_lines()),
            (1, self.rounds_lines()),
            (0, vec![self.title_line()]),
            (4, self.own_operation_lines()),
            (4, self.usage_limit_lines()),
            (6, self.confidence_lines()),
            (8, self.footer_lines()),
        ];
        // The user looks for the workers first, so up to a third of the lines is kept for them.
        let worker_lines = self.board.workers.len().min(max_lines.div_ceil(3));
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
        let subject_title = run_view.settings.as_ref().map(|settings| clean_line(&settings.subject.title()));
        let subject_title = subject_title.unwrap_or_default();
        let short_subject = subject_title.rsplit('/').next().unwrap_or_default().to_string();
        let run_id = run_view.run_id.as_ref().map_or("", |run_id| run_id.as_str());
        let mode_name = self.board.controls.mode;
        // The directory is the first thing to go, then the words.
        let title_text = first_fitting(
            self.columns.saturating_sub(3),
            [
                format!("review of {subject_title} · run {run_id} · {mode_name}"),
                format!("review of {short_subject} · run {run_id} · {mode_name}"),
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

    /// Draws the strip of rounds: `round 1 ●●● 3 new → round 2 ○ nothing new`.
    fn rounds_lines(&self) -> Vec<String> {
        let round_strip = &self.board.round_strip;
        let Some((last_round, earlier_rounds)) = round_strip.split_last() else { return Vec::new() };
        let draw_strip = |round_word: &str, with_dots: bool, first_shown: usize| {
            let omitted_mark = if first_shown > 0 { "… → " } else { "" };
            let ended_rounds = earlier_rounds[first_shown..]
                .iter()
                .map(|earlier_round| describe_round_result(round_word, earlier_round, None, with_dots) + " → ");
            let LiveBoard { max_rounds, current_stage: live_stage, .. } = self.board;
            let stage_text = match live_stage {
                _ if !self.board.is_running() => String::new(),
                // The round is over in this stage, so its result is already shown.
                LiveStage::Fixing(iteration) => format!(", fix iteration {iteration}"),
                LiveStage::Reviewing if last_round.result.is_none() => " reviewing".to_string(),
                LiveStage::Challenging if last_round.result.is_none() => " challenging".to_string(),
                _ => String::new(),
            };
            format!(
                "{omitted_mark}{}{}{stage_text}",
                ended_rounds.collect::<String>(),
                describe_round_result(round_word, last_round, Some(*max_rounds), with_dots)
            )
        };
        // The forms go from the most detailed to the shortest; if none fits, the oldest rounds are left out.
        let full_forms = [draw_strip("round ", true, 0), draw_strip("round ", false, 0), draw_strip("", false, 0)];
        let shortened_forms = (1..=earlier_rounds.len()).map(|first_shown| draw_strip("", false, first_shown));
        vec![
            self.styled_line(
                TextStyle::Plain,
                &first_fitting(self.columns, full_forms.into_iter().chain(shortened_forms)),
            ),
        ]
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
                    phrases::describe_wait(agent_name, until_ms, wall_ms),
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

    /// Draws how many findings of each severity are fixed: `fixed  critical ▓ 1/1 · high ▓▒░ 1/3`.
    fn fixed_lines(&self) -> Vec<String> {
        // Dismissed findings need no work.
        let active_findings = || {
            let all_findings = self.board.run_view.findings.values();
            all_findings.filter(|finding| !matches!(finding.status, FindingStatus::Dismissed { .. }))
        };
        if active_findings().next().is_none() {
            return Vec::new();
        }
        let draw_strip = |with_bars: bool, separator: &str| {
            let mut severity_parts = Vec::new();
            for severity in Severity::ALL {
                let mut progress = SeverityProgress::default();
                active_findings()
                    .filter(|counted_finding| counted_finding.severity == severity)
                    .for_each(|counted_finding| progress.add_finding(&counted_finding.status));
                if progress.total_count() > 0 {
                    let bar_text = if with_bars { progress.draw_bar() } else { String::new() };
                    severity_parts.push(format!(
                        "{severity} {bar_text}{}/{}",
                        progress.fixed_count,
                        progress.total_count()
                    ));
                }
            }
            severity_parts.join(separator)
        };
        // Blocked and deferred findings are counted behind the bars.
        let counts = self.board.run_view.finding_counts();
        let set_aside: String = [(counts.blocked, "blocked"), (counts.deferred, "deferred")]
            .iter()
            .filter(|(status_count, _)| *status_count > 0)
            .map(|(status_count, status_name)| format!(" · {status_count} {status_name}"))
            .collect();
        let line_forms = [
            format!("fixed  {}{set_aside}", draw_strip(true, " · ")),
            format!("fixed  {}{set_aside}", draw_strip(false, " · ")),
            format!("fixed {}{set_aside}", draw_strip(false, " ")),
            format!("fixed {}/{}{set_aside}", counts.fixed, counts.total),
        ];
        vec![self.styled_line(TextStyle::Plain, &first_fitting(self.columns, line_forms))]
    }

    /// Draws the score of the last round: `confidence 83 of 100`.
    fn confidence_lines(&self) -> Vec<String> {
        let Some(score_card) = &self.board.run_view.confidence else { return Vec::new() };
        vec![self.styled_line(TextStyle::Plain, &phrases::describe_score(score_card))]
    }

    /// Draws what is used of the limits: `31k tokens · $0.41 of $5.00 · 2:13 of 2:00:00`.
    fn budget_lines(&self) -> Vec<String> {
        let run_view = &self.board.run_view;
        let Some(limits) = run_view.settings.as_ref().map(|settings| &settings.limits) else {
            return Vec::new();
        };
        let shares = self.board.granted_shares();
        let spent = &run_view.usage;
        let mut budget_parts = Vec::new();
        // Only tokens without a reported cost count against the token limit; the others count against the cost limit.
        budget_parts.push(match spent.uncosted_tokens {
            0 => format!("{} tokens", phrases::abbreviate_count(spent.tokens)),
            uncosted_tokens => {
                let limit_text = phrases::abbreviate_count(limits.tokens.saturating_mul(shares));
                format!("{} of {limit_text} tokens", phrases::abbreviate_count(uncosted_tokens))
            }
        });
        let paid_cost = Cost(spent.cost.0.saturating_sub(spent.notional.0));
        if paid_cost.0 > 0 || spent.uncosted_tokens == 0 {
            let cost_limit = Cost(limits.cost.0.saturating_mul(shares));
            budget_parts.push(format!("{} of {}", phrases::format_cost(paid_cost), phrases::format_cost(cost_limit)));
        }
        if spent.notional.0 > 0 {
            budget_parts.push(format!("{} at list price", phrases::format_cost(spent.notional)));
        }
        let limit_text = phrases::format_duration(limits.runtime_ms.saturating_mul(shares));
        budget_parts.push(format!("{} of {limit_text}", phrases::format_duration(self.board.awake_ms)));
        vec![self.styled_line(TextStyle::Plain, &budget_parts.join(" · "))]
    }

    /// Draws the keys, and their explanation if the user asked for it.
    fn footer_lines(&self) -> Vec<String> {
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
                "▓ fixed ▒ being fixed ░ open – blocked or deferred · ! no output for a minute".to_string(),
            ] {
                help_lines.push(self.styled_line(TextStyle::Dim, &help_text));
            }
        }
        help_lines
    }

    /// Draws everything in one line, for tiny screens and for the silent mode.
    fn status_line(&self) -> String {
        let board = self.board;
        let counts = board.run_view.finding_counts();
        let round_number = board.round_strip.last().map_or(0, |last_round| last_round.round_number);
        let (finished_workers, worker_count) = board.count_finished_workers();
        let stage_text = match board.current_stage {
            LiveStage::Starting => "starting".to_string(),
            LiveStage::Reviewing => format!("reviewing {finished_workers}/{worker_count}"),
            LiveStage::Challenging => format!("challenging {finished_workers}/{worker_count}"),
            LiveStage::Fixing(_) => format!("fixing {finished_workers}/{worker_count}"),
        };
        let stage_text = if !board.is_running() {
            "ended".to_string()
        } else if board.controls.is_stopping {
            "stopping".to_string()
        } else {
            stage_text
        };
        let questions_text = match board.run_view.open_decisions().count() {
            0 => String::new(),
            question_count => {
                format!(" · {} for you", phrases::format_count(question_count as u32, "question"))
            }
        };
        // One stalled worker is enough to raise the warning.
        let is_stalled = board.workers.iter().any(|worker| worker.stalled_ms(board.awake_ms).is_some());
        let (mark_text, mark_style) = if is_stalled { ("! ", TextStyle::Warning) } else { ("▸ ", TextStyle::Bold) };
        let (open_count, fixed_count) = (counts.open, counts.fixed);
        let elapsed_text = phrases::format_duration(board.awake_ms);
        let run_id = board.run_view.run_id.as_ref().map_or("", |run_id| run_id.as_str());
        let short_status = format!("round {round_number}/{} {stage_text} · {open_count} open", board.max_rounds);
        // The forms go from the fullest to the shortest.
        let status_text = first_fitting(
            self.columns.saturating_sub(2),
            [
                format!(
                    "{run_id} · {short_status}, {fixed_count} fixed{questions_text} · {} · {elapsed_text}",
                    phrases::describe_usage_so_far(&board.run_view.usage)
                ),
                format!("{short_status}, {fixed_count} fixed{questions_text} · {elapsed_text}"),
                format!("{short_status}{questions_text}"),
                short_status,
                format!("round {round_number} {stage_text} · {open_count} open"),
                format!("round {round_number} {stage_text}"),
                stage_text,
            ],
        );
        self.new_row().append(mark_style, mark_text).append(TextStyle::Plain, &status_text).finish()
    }
}

/// Describes one round of the strip, without its stage; the last round also says how many there may be.
fn describe_round_result(
    round_word: &str,
    round_progress: &RoundProgress,
    max_rounds: Option<u32>,
    with_dots: bool,
) -> String {
    let limit_text = max_rounds.map(|max_rounds| format!(" of {max_rounds}")).unwrap_or_default();
    let round_head = format!("{round_word}{}{limit_text}", round_progress.round_number);
    match round_progress.result {
        None => round_head,
        // A dry round needs no dots.
        Some(round_result) if round_result.is_dry => format!("{round_head} ○ nothing new"),
        Some(round_result) if with_dots => {
            format!(
                "{round_head} {} {} new",
                "●".repeat(round_result.new_findings.min(MAX_BAR_CELLS) as usize),
                round_result.new_findings
            )
        }
        Some(round_result) => format!("{round_head}: {} new", round_result.new_findings),
    }
}

/// Counts the findings of one severity by their progress.
#[derive(Default)]
struct SeverityProgress {
    fixed_count: u32,
    assigned_count: u32,
    open_count: u32,
    set_aside_count: u32,
}

impl SeverityProgress {
    fn add_finding(&mut self, status: &FindingStatus) {
        match status {
            FindingStatus::Fixed => self.fixed_count += 1,
            FindingStatus::Assigned => self.assigned_count += 1,
            FindingStatus::Open => self.open_count += 1,
            FindingStatus::Blocked { .. } | FindingStatus::Deferred { .. } => self.set_aside_count += 1,
            FindingStatus::Dismissed { .. } => {}
        }
    }

    fn total_count(&self) -> u32 {
        self.fixed_count + self.assigned_count + self.open_count + self.set_aside_count
    }

    /// Draws the bar of one severity.
    fn draw_bar(&self) -> String {
        let total_findings = self.total_count();
        let bar_cells = total_findings.min(MAX_BAR_CELLS);
        // Sums are rounded, not single parts, so that the parts always add up to the length of the bar.
        let cells_upto = |partial_sum: u32| (partial_sum * bar_cells / total_findings.max(1)) as usize;
        let (fixed_end, assigned_end) =
            (cells_upto(self.fixed_count), cells_upto(self.fixed_count + self.assigned_count));
        let (open_end, bar_end) =
            (cells_upto(self.fixed_count + self.assigned_count + self.open_count), bar_cells as usize);
        [
            ("▓", fixed_end),
            ("▒", assigned_end - fixed_end),
            ("░", open_end - assigned_end),
            ("–", bar_end - open_end),
            (" ", 1),
        ]
        .map(|(cell_symbol, cell_count)| cell_symbol.repeat(cell_count))
        .concat()
    }
}
