//! The rounds of a review and its current stage, as a strip for the live view.

/// At most this many dots stand for the findings of a round; longer rows say no more.
const MAX_DOTS: u32 = 9;

/// The stage of a review.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum ReviewStage {
    #[default]
    Starting,
    Reviewing,
    /// Challengers dispute findings that only one voice raised.
    Challenging,
    /// Fixers work, in the fix iteration of this number.
    Fixing(u32),
}

/// One round in the strip of rounds.
#[derive(Clone, Debug, PartialEq, Eq)]
struct RoundProgress {
    round_number: u32,
    /// The result; `None` while the round is under way.
    result: Option<RoundResult>,
}

/// The result of a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RoundResult {
    pub new_findings: u32,
    pub is_dry: bool,
}

/// The rounds so far, and the stage of the last one.
#[derive(Clone, Debug, Default)]
pub(super) struct RoundStrip {
    rounds: Vec<RoundProgress>,
    /// The maximum number of rounds.
    pub max_rounds: u32,
    pub stage: ReviewStage,
}

impl RoundStrip {
    /// Begins a round. A round that begins again replaces its earlier entry.
    pub(super) fn start_round(&mut self, round_number: u32, max_rounds: u32) {
        self.rounds.retain(|known_round| known_round.round_number < round_number);
        self.rounds.push(RoundProgress { round_number, result: None });
        self.max_rounds = max_rounds;
        self.stage = ReviewStage::Reviewing;
    }

    pub(super) fn end_round(&mut self, result: RoundResult) {
        if let Some(last_round) = self.rounds.last_mut() {
            last_round.result = Some(result);
        }
    }

    /// The number of the round that is under way or was the last one; 0 before the first.
    pub(super) fn round_number(&self) -> u32 {
        self.rounds.last().map_or(0, |last_round| last_round.round_number)
    }

    /// Describes the strip, `round 1 ●●● 3 new → round 2 ○ nothing new`, from the fullest form to the shortest.
    pub(super) fn describe(&self, is_running: bool) -> Vec<String> {
        let Some((last_round, earlier_rounds)) = self.rounds.split_last() else { return Vec::new() };
        let stage_text = match self.stage {
            _ if !is_running => String::new(),
            // The round is over in this stage, so its result is already shown.
            ReviewStage::Fixing(iteration) => format!(", fix iteration {iteration}"),
            ReviewStage::Reviewing if last_round.result.is_none() => " reviewing".to_string(),
            ReviewStage::Challenging if last_round.result.is_none() => " challenging".to_string(),
            _ => String::new(),
        };
        let draw_strip = |round_word: &str, with_dots: bool, first_shown: usize| {
            let omitted_mark = if first_shown > 0 { "… → " } else { "" };
            let ended_rounds = earlier_rounds[first_shown..]
                .iter()
                .map(|earlier_round| describe_round_result(round_word, earlier_round, None, with_dots) + " → ");
            format!(
                "{omitted_mark}{}{}{stage_text}",
                ended_rounds.collect::<String>(),
                describe_round_result(round_word, last_round, Some(self.max_rounds), with_dots)
            )
        };
        // If no form with all rounds fits, the oldest ones are left out.
        let full_forms = [draw_strip("round ", true, 0), draw_strip("round ", false, 0), draw_strip("", false, 0)];
        let shortened_forms = (1..=earlier_rounds.len()).map(|first_shown| draw_strip("", false, first_shown));
        full_forms.into_iter().chain(shortened_forms).collect()
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
                "●".repeat(round_result.new_findings.min(MAX_DOTS) as usize),
                round_result.new_findings
            )
        }
        Some(round_result) => format!("{round_head}: {} new", round_result.new_findings),
    }
}
