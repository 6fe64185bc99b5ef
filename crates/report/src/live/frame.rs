//! Draws a board: lines that fit the width, and never more of them than the height allows.
//!
//! Wide screens show seats side by side, narrow ones a line per seat, tiny ones one line for everything. Symbols and words
//! carry the state; colour only emphasises it.

use tribunal_core::{
    finding::{Severity, Status},
    limits::Cost,
};

use super::{
    board::{Board, Round, Stage},
    row::{Row, fitting},
    workers,
};
use crate::{
    Mode,
    columns::clean,
    style::{Screen, Style},
    words,
};

/// From this width on, seats are shown side by side.
const WIDE: usize = 100;
/// Below this width or height there is only one line.
const NARROW: usize = 40;
const LOW: usize = 6;
/// An operation of the tool itself is shown if it takes longer than this.
const LONG_MS: u64 = 30_000;
/// The maximum length of a bar; longer ones say no more.
const BAR: u32 = 9;

impl Board {
    /// Draws the live region. No line is wider than the screen, and there are at most `max_lines` of them.
    pub fn frame(&self, screen: &Screen, height: usize) -> Vec<String> {
        let width = screen.width.unwrap_or(80);
        // The last column stays free: a terminal that has filled it is about to wrap.
        let frame = Frame { board: self, screen, room: width.saturating_sub(1) };
        if height == 0 {
            Vec::new()
        } else if width < NARROW || height < LOW || self.controls.mode == Mode::Silent {
            vec![frame.status()]
        } else {
            frame.whole(height, width >= WIDE)
        }
    }
}

/// A board and the room to draw it in.
pub(super) struct Frame<'a> {
    pub board: &'a Board,
    pub screen: &'a Screen,
    /// The number of columns that may be used.
    pub room: usize,
}

impl Frame<'_> {
    pub(super) fn row(&self) -> Row<'_> {
        Row::new(self.screen, self.room)
    }

    /// Draws one line in one style.
    fn line(&self, style: Style, text: &str) -> String {
        self.row().put(style, text).done()
    }

    /// Draws all parts that fit, in the order of their positions.
    fn whole(&self, height: usize, wide: bool) -> Vec<String> {
        // Each part has its position on the screen. The list is sorted by importance: the last one is left out first.
        let mut around = [
            (5, self.fixed()),
            (7, self.budget()),
            (3, self.questions()),
            (1, self.rounds()),
            (0, vec![self.title()]),
            (4, self.aside()),
            (4, self.limited()),
            (6, self.confidence()),
            (8, self.footer()),
        ];
        // The user looks for the workers first, so they keep at least a third of the lines.
        let wanted = self.board.workers.len().min(height.div_ceil(3));
        for kept in (0..around.len()).rev() {
            let lines: usize = around.iter().map(|(_, lines)| lines.len()).sum();
            if lines + wanted <= height {
                break;
            }
            around[kept].1.clear();
        }
        let lines: usize = around.iter().map(|(_, lines)| lines.len()).sum();
        // The workers take what is left, because they can be drawn in any height.
        let mut parts = around.to_vec();
        parts.push((2, workers::draw(self, height.saturating_sub(lines), wide)));
        parts.sort_by_key(|(place, _)| *place);
        let mut all: Vec<String> = parts.into_iter().flat_map(|(_, lines)| lines).collect();
        all.truncate(height);
        all
    }

    /// Draws the title with the run and the mode.
    fn title(&self) -> String {
        let view = &self.board.view;
        let subject = view.settings.as_ref().map(|settings| clean(&settings.subject.title()));
        let subject = subject.unwrap_or_default();
        let short = subject.rsplit('/').next().unwrap_or_default().to_string();
        let run = view.run.as_ref().map_or("", |run| run.as_str());
        let mode = self.board.controls.mode;
        // The directory is the first thing to go, then the words.
        let text = fitting(
            self.room.saturating_sub(3),
            [
                format!("review of {subject} · run {run} · {mode}"),
                format!("review of {short} · run {run} · {mode}"),
                format!("{short} · {run} · {mode}"),
            ],
        );
        // The line separates the region from the log, even without colour.
        self.row().put(Style::Dim, "── ").put(Style::Bold, &text).rule(Style::Dim).done()
    }

    /// Draws the strip of rounds: `round 1 ●●● 3 new → round 2 ○ dry`.
    fn rounds(&self) -> Vec<String> {
        let rounds = &self.board.rounds;
        let Some((last, before)) = rounds.split_last() else { return Vec::new() };
        let strip = |word: &str, dots: bool, from: usize| {
            let gone = if from > 0 { "… → " } else { "" };
            let ended = before[from..].iter().map(|round| came(word, round, None, dots) + " → ");
            let Board { of, stage, .. } = self.board;
            let now = match stage {
                _ if !self.board.is_running() => String::new(),
                // The round is over in this stage, so its result is already shown.
                Stage::Fixing(iteration) => format!(", fix iteration {iteration}"),
                Stage::Reviewing if last.came.is_none() => " reviewing".to_string(),
                Stage::Challenging if last.came.is_none() => " challenging".to_string(),
                _ => String::new(),
            };
            format!("{gone}{}{}{now}", ended.collect::<String>(), came(word, last, Some(*of), dots))
        };
        // From the most detailed form to the shortest; if none fits, the oldest rounds are left out.
        let all = [strip("round ", true, 0), strip("round ", false, 0), strip("", false, 0)];
        let fewer = (1..=before.len()).map(|from| strip("", false, from));
        vec![self.line(Style::Plain, &fitting(self.room, all.into_iter().chain(fewer)))]
    }

    /// Draws what the tool itself is doing, if that takes long and is why nothing else moves.
    fn aside(&self) -> Vec<String> {
        let Some((what, since)) = self.board.aside else { return Vec::new() };
        let ms = self.board.now.saturating_sub(since);
        if ms < LONG_MS {
            return Vec::new();
        }
        vec![self.line(Style::Warn, &format!("! {what}, for {} now", words::duration(ms)))]
    }

    /// Draws the usage limits that are waited for, with the time that is left.
    fn limited(&self) -> Vec<String> {
        let now = self.board.wall_ms();
        let awaited = self.board.view.awaited();
        awaited
            .map(|(agent, until_ms)| {
                let left = words::duration(until_ms.saturating_sub(now));
                let forms = [
                    words::awaited(agent, until_ms, now),
                    format!("{agent} is at its usage limit; {left} left"),
                    format!("{agent}: limit, {left} left"),
                ];
                let text = fitting(self.room.saturating_sub(2), forms);
                self.line(Style::Warn, &format!("! {text}"))
            })
            .collect()
    }

    /// Draws the first open decision and the number of the others.
    fn questions(&self) -> Vec<String> {
        let mut waiting = self.board.view.waiting();
        let Some(first) = waiting.next() else { return Vec::new() };
        // Only one question fits; the others are counted.
        let more = match waiting.count() {
            0 => String::new(),
            more => format!(" (and {more} more)"),
        };
        let text = format!("? {} waits for {}{more}: {}", first.id, first.owner, clean(&first.question));
        vec![self.line(Style::Warn, &text)]
    }

    /// Draws the way of findings from open to fixed: `fixed  critical ▓ 1/1 · high ▓▒░ 1/3`.
    fn fixed(&self) -> Vec<String> {
        // Dismissed findings need no work.
        let findings = || {
            let all = self.board.view.findings.values();
            all.filter(|finding| !matches!(finding.status, Status::Dismissed { .. }))
        };
        if findings().next().is_none() {
            return Vec::new();
        }
        let strip = |bars: bool, between: &str| {
            let mut parts = Vec::new();
            for severity in Severity::ALL {
                let mut counted = Counted::default();
                findings().filter(|one| one.severity == severity).for_each(|one| counted.count(&one.status));
                if counted.all() > 0 {
                    let bar = if bars { counted.bar() } else { String::new() };
                    parts.push(format!("{severity} {bar}{}/{}", counted.fixed, counted.all()));
                }
            }
            parts.join(between)
        };
        // Blocked and deferred findings are counted behind the bars.
        let counts = self.board.view.counts();
        let aside: String = [(counts.blocked, "blocked"), (counts.deferred, "deferred")]
            .iter()
            .filter(|(number, _)| *number > 0)
            .map(|(number, word)| format!(" · {number} {word}"))
            .collect();
        let forms = [
            format!("fixed  {}{aside}", strip(true, " · ")),
            format!("fixed  {}{aside}", strip(false, " · ")),
            format!("fixed {}{aside}", strip(false, " ")),
            format!("fixed {}/{}{aside}", counts.fixed, counts.total),
        ];
        vec![self.line(Style::Plain, &fitting(self.room, forms))]
    }

    /// Draws the score of the last round with its parts: `confidence 83: validation 35/35, reviewers 15/25; …`.
    fn confidence(&self) -> Vec<String> {
        let Some(found) = &self.board.view.confidence else { return Vec::new() };
        let score = format!("confidence {}", found.score);
        let forms = [words::confidence(found), format!("{score}: {}", found.counted()), score];
        vec![self.line(Style::Plain, &fitting(self.room, forms))]
    }

    /// Draws what is used of the limits: `31k tokens · cost 0.41 of 5.00 · 2:13 of 2:00:00`.
    fn budget(&self) -> Vec<String> {
        let view = &self.board.view;
        let Some(limits) = view.settings.as_ref().map(|settings| &settings.limits) else {
            return Vec::new();
        };
        let shares = self.board.shares();
        let spent = &view.spent;
        let mut parts = Vec::new();
        // Only tokens without a reported cost count against the token limit; the others count against the cost limit.
        parts.push(match spent.uncosted_tokens {
            0 => format!("{} tokens", words::short(spent.tokens)),
            some => {
                let of = words::short(limits.tokens.saturating_mul(shares));
                format!("{} of {of} tokens", words::short(some))
            }
        });
        let paid = Cost(spent.cost.0.saturating_sub(spent.notional.0));
        if paid.0 > 0 || spent.uncosted_tokens == 0 {
            let of = Cost(limits.cost.0.saturating_mul(shares));
            parts.push(format!("cost {paid} of {of}"));
        }
        if spent.notional.0 > 0 {
            parts.push(format!("{} at list price", spent.notional));
        }
        let of = words::duration(limits.runtime_ms.saturating_mul(shares));
        parts.push(format!("{} of {of}", words::duration(self.board.now)));
        vec![self.line(Style::Plain, &parts.join(" · "))]
    }

    /// Draws the keys, and their explanation if the user asked for it.
    fn footer(&self) -> Vec<String> {
        let controls = &self.board.controls;
        let forms = if controls.stopping {
            ["stopping: what runs may finish; Ctrl-C ends it now", "stopping; Ctrl-C ends it now"]
        } else if controls.keys {
            ["1-4 or v: show less or more · s stop · ? help", "1-4 show · s stop · ? help"]
        } else {
            ["Ctrl-C: stop when what runs has finished", "Ctrl-C: stop"]
        };
        let mut lines = vec![self.line(Style::Dim, &fitting(self.room, forms.map(String::from)))];
        if controls.help {
            let modes = Mode::ALL.iter().enumerate().map(|(at, mode)| format!("{} {mode}", at + 1));
            let modes = modes.collect::<Vec<_>>().join(" · ");
            for text in [
                format!("{modes} · v the next"),
                "s stop: what runs may finish, then the run is parked; Ctrl-C twice ends it now".to_string(),
                "▓ fixed ▒ in a fixer's hands ░ open – blocked or deferred · ! not heard of for a minute"
                    .to_string(),
            ] {
                lines.push(self.line(Style::Dim, &text));
            }
        }
        lines
    }

    /// Draws everything in one line, for tiny screens and for the silent mode.
    fn status(&self) -> String {
        let board = self.board;
        let counts = board.view.counts();
        let round = board.rounds.last().map_or(0, |round| round.number);
        let (answered, workers) = board.answered();
        let stage = match board.stage {
            Stage::Starting => "starting".to_string(),
            Stage::Reviewing => format!("reviewing {answered}/{workers}"),
            Stage::Challenging => format!("challenging {answered}/{workers}"),
            Stage::Fixing(_) => format!("fixing {answered}/{workers}"),
        };
        let stage = if !board.is_running() {
            "ended".to_string()
        } else if board.controls.stopping {
            "stopping".to_string()
        } else {
            stage
        };
        let asks = match board.view.waiting().count() {
            0 => String::new(),
            number => format!(" · {} for you", words::count(number as u32, "question")),
        };
        // One stalled worker is enough to raise the warning.
        let stalled = board.workers.iter().any(|worker| worker.stalled_ms(board.now).is_some());
        let (sign, style) = if stalled { ("! ", Style::Warn) } else { ("▸ ", Style::Bold) };
        let (open, fixed) = (counts.open, counts.fixed);
        let time = words::duration(board.now);
        let run = board.view.run.as_ref().map_or("", |run| run.as_str());
        let short = format!("round {round}/{} {stage} · {open} open", board.of);
        // From the fullest form to the shortest.
        let text = fitting(
            self.room.saturating_sub(2),
            [
                format!(
                    "{run} · {short}, {fixed} fixed{asks} · {} · {time}",
                    words::used_up(&board.view.spent)
                ),
                format!("{short}, {fixed} fixed{asks} · {time}"),
                format!("{short}{asks}"),
                short,
                format!("round {round} {stage} · {open} open"),
                format!("round {round} {stage}"),
                stage,
            ],
        );
        self.row().put(style, sign).put(Style::Plain, &text).done()
    }
}

/// Describes one round of the strip, without its stage; the last round also says how many there may be.
fn came(word: &str, round: &Round, of: Option<u32>, dots: bool) -> String {
    let of = of.map(|of| format!(" of {of}")).unwrap_or_default();
    let head = format!("{word}{}{of}", round.number);
    match round.came {
        None => head,
        // A dry round needs no dots.
        Some(came) if came.dry => format!("{head} ○ dry"),
        Some(came) if dots => {
            format!("{head} {} {} new", "●".repeat(came.new.min(BAR) as usize), came.new)
        }
        Some(came) => format!("{head}: {} new", came.new),
    }
}

/// Counts the findings of one severity by their progress.
#[derive(Default)]
struct Counted {
    fixed: u32,
    in_hand: u32,
    open: u32,
    aside: u32,
}

impl Counted {
    fn count(&mut self, status: &Status) {
        match status {
            Status::Fixed => self.fixed += 1,
            Status::Assigned => self.in_hand += 1,
            Status::Open => self.open += 1,
            Status::Blocked { .. } | Status::Deferred { .. } => self.aside += 1,
            Status::Dismissed { .. } => {}
        }
    }

    fn all(&self) -> u32 {
        self.fixed + self.in_hand + self.open + self.aside
    }

    /// Draws the bar of one severity.
    fn bar(&self) -> String {
        let all = self.all();
        let cells = all.min(BAR);
        // Sums are rounded, not single parts: bars of equal counts have equal lengths that way.
        let upto = |sum: u32| (sum * cells / all.max(1)) as usize;
        let (fixed, in_hand) = (upto(self.fixed), upto(self.fixed + self.in_hand));
        let (open, end) = (upto(self.fixed + self.in_hand + self.open), cells as usize);
        [("▓", fixed), ("▒", in_hand - fixed), ("░", open - in_hand), ("–", end - open), (" ", 1)]
            .map(|(sign, many)| sign.repeat(many))
            .concat()
    }
}
