//! Rulings of challengers on findings, as the journal records them: the verdict, who voted how, and the quoted evidence.

use std::collections::{BTreeMap, BTreeSet};

use tribunal_core::{
    brief::Holds,
    challenge::{Ruled, Voice},
    event::{Entry, Event},
    finding::Severity,
    ids::FindingId,
};

use crate::words;

/// The verdict on one finding and the votes that led to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ruling {
    pub ruled: Ruled,
    /// The severity with which the finding was raised.
    pub from: Severity,
    /// The severity since the ruling.
    pub to: Severity,
    pub voices: Vec<Voice>,
}

/// All rulings of a run, by finding.
#[derive(Clone, Debug, Default)]
pub struct Rulings {
    ruled: BTreeMap<FindingId, Ruling>,
    severities: BTreeMap<FindingId, Severity>,
}

impl Rulings {
    /// Collects the rulings from a journal.
    pub fn of<'a>(entries: impl IntoIterator<Item = &'a Entry>) -> Rulings {
        let mut rulings = Rulings::default();
        entries.into_iter().for_each(|entry| rulings.see(&entry.event));
        rulings
    }

    /// Finds the ruling on a finding, if it was challenged.
    pub fn get(&self, finding: FindingId) -> Option<&Ruling> {
        self.ruled.get(&finding)
    }

    /// Updates severities and rulings with the next event of the journal.
    pub(crate) fn see(&mut self, event: &Event) {
        match event {
            Event::FindingRaised { finding } => {
                self.severities.insert(finding.id, finding.severity);
            }
            // Joining a duplicate may raise the severity, and a ruling is compared with the latest one.
            Event::FindingJoined { finding, severity, .. } => {
                self.severities.insert(*finding, *severity);
            }
            Event::FindingRuled { finding, ruled, severity, voices } => {
                let from = self.severities.insert(*finding, *severity).unwrap_or(*severity);
                let (ruled, to, voices) = (*ruled, *severity, voices.clone());
                self.ruled.insert(*finding, Ruling { ruled, from, to, voices });
            }
            _ => {}
        }
    }
}

impl Ruling {
    /// Describes the verdict: `in doubt, high → medium (1 valid, 2 ambiguous)`.
    pub fn says(&self) -> String {
        match self.ruled {
            Ruled::Valid => format!("upheld by {}", self.who(Holds::Valid)),
            Ruled::Person => format!("weighed by a person, {} → {}", self.from, self.to),
            Ruled::Invalid => format!("refuted by {}", self.who(Holds::Invalid)),
            Ruled::Unheard => "no challenger was heard: it stands as it was raised".to_string(),
            // Challengers cannot lower a critical finding by themselves; the user decides about it.
            Ruled::Ambiguous if self.to == Severity::Critical => {
                format!("in doubt ({}), for a person to decide", self.split())
            }
            Ruled::Ambiguous if self.from == self.to => {
                format!("in doubt, stays {} ({})", self.to, self.split())
            }
            Ruled::Ambiguous => format!("in doubt, {} → {} ({})", self.from, self.to, self.split()),
        }
    }

    /// Returns the note and the quoted evidence of the voice that speaks most clearly against the finding.
    pub fn against(&self) -> Option<(&str, &str)> {
        // Votes that agree with the finding are never shown as objections to it.
        let against = |voice: &&Voice| match self.ruled {
            Ruled::Invalid => voice.holds == Holds::Invalid,
            Ruled::Ambiguous => voice.holds != Holds::Valid,
            Ruled::Valid | Ruled::Unheard | Ruled::Person => false,
        };
        let all = || self.voices.iter().filter(against);
        // A voice that quotes evidence is worth more than one that only asserts something.
        let shown = all().find(|voice| !voice.counter.is_empty());
        let telling = shown.or_else(|| all().find(|voice| !voice.note.is_empty()))?;
        Some((telling.note.as_str(), telling.counter.as_str()))
    }

    /// Describes who voted so: `2 of 3 challengers (codex, gemini)`. Agents are named only if there are several.
    fn who(&self, holds: Holds) -> String {
        let mut names: Vec<&str> = Vec::new();
        let with = self.voices.iter().filter(|voice| voice.holds == holds);
        let with = with.inspect(|voice| names.push(voice.agent.as_str())).count();
        // An agent that voted twice is named once.
        let mut seen = BTreeSet::new();
        names.retain(|name| seen.insert(*name));
        let all = words::count(self.voices.len() as u32, "challenger");
        let first = self.voices.first().map(|voice| &voice.agent);
        let one_agent = self.voices.iter().all(|voice| Some(&voice.agent) == first);
        let names = if one_agent { String::new() } else { format!(" ({})", names.join(", ")) };
        format!("{with} of {all}{names}")
    }

    /// Describes how the votes are split: `1 valid, 2 ambiguous`.
    fn split(&self) -> String {
        let say = |holds: Holds| self.voices.iter().filter(|voice| voice.holds == holds).count();
        // Ambiguous votes come last, because they decide nothing by themselves.
        let parts = [Holds::Valid, Holds::Invalid, Holds::Ambiguous].map(|holds| (say(holds), holds));
        let parts = parts.iter().filter(|(number, _)| *number > 0);
        parts.map(|(number, holds)| format!("{number} {holds}")).collect::<Vec<_>>().join(", ")
    }
}

#[cfg(test)]
mod tests {
    use tribunal_core::ids::AgentName;

    use super::*;
    use Holds::{Ambiguous, Invalid, Valid};

    fn ruling(ruled: Ruled, (from, to): (Severity, Severity), said: &[(&str, Holds)]) -> Ruling {
        let voice = |(agent, holds): &(&str, Holds)| Voice {
            agent: AgentName::new(*agent),
            holds: *holds,
            note: format!("{agent} says {holds}"),
            counter: String::new(),
        };
        Ruling { ruled, from, to, voices: said.iter().map(voice).collect() }
    }

    const STILL: (Severity, Severity) = (Severity::High, Severity::High);

    #[test]
    fn a_ruling_says_who_and_from_what_to_what() {
        let down = (Severity::High, Severity::Medium);
        let (low, critical) = ((Severity::Low, Severity::Low), (Severity::Critical, Severity::Critical));
        let split = [("a", Valid), ("b", Invalid), ("a", Ambiguous)];
        for (ruling, says) in [
            (ruling(Ruled::Valid, STILL, &[("a", Valid), ("a", Valid)]), "upheld by 2 of 2 challengers"),
            (ruling(Ruled::Valid, STILL, &[("a", Valid)]), "upheld by 1 of 1 challenger"),
            (
                ruling(Ruled::Invalid, STILL, &[("a", Invalid), ("b", Valid), ("c", Invalid)]),
                "refuted by 2 of 3 challengers (a, c)",
            ),
            (
                ruling(Ruled::Ambiguous, down, &split),
                "in doubt, high → medium (1 valid, 1 invalid, 1 ambiguous)",
            ),
            (ruling(Ruled::Ambiguous, low, &[("a", Invalid)]), "in doubt, stays low (1 invalid)"),
            (
                ruling(Ruled::Ambiguous, critical, &split),
                "in doubt (1 valid, 1 invalid, 1 ambiguous), for a person to decide",
            ),
            (ruling(Ruled::Unheard, STILL, &[]), "no challenger was heard: it stands as it was raised"),
        ] {
            assert_eq!(ruling.says(), says);
        }
    }

    #[test]
    fn against_a_finding_speaks_whoever_shows_something_for_it() {
        let mut refuted =
            ruling(Ruled::Invalid, STILL, &[("a", Invalid), ("b", Ambiguous), ("c", Invalid), ("d", Valid)]);
        assert_eq!(refuted.against(), Some(("a says invalid", "")));
        refuted.voices[1].counter = "not theirs".into();
        refuted.voices[2].counter = "Backups are kept.".into();
        assert_eq!(refuted.against(), Some(("c says invalid", "Backups are kept.")));
        assert_eq!(ruling(Ruled::Valid, STILL, &[("a", Valid), ("b", Invalid)]).against(), None);
    }
}
