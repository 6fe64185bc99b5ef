//! Identifiers, each with its own type, so that a run id can never be used as a finding id.
//!
//! Ids are made where the thing is made (`runner` for runs, [`crate::review::merge`] for findings); this module only defines
//! their format.

use alloc::{
    format,
    string::{String, ToString},
};
use core::fmt;

use tribunal_json::{Deserialize, FromJson, JsonError, Node, Serialize, ToJson, schemars};

macro_rules! text_id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, schemars::JsonSchema)]
        #[serde(transparent)]
        pub struct $name(String);

        impl $name {
            pub fn new(text: impl Into<String>) -> Self {
                Self(text.into())
            }

            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}

text_id!(
    /// One durable execution, for instance `prd-k3f9`.
    RunId
);
text_id!(
    /// One command that started several runs. They are resumed together.
    BatchId
);
text_id!(
    /// An agent as the settings name it, for instance `claude-code`.
    AgentName
);
text_id!(
    /// A coding client, for instance `codex`. Only `agents` knows which ids exist.
    ClientId
);
text_id!(
    /// The content hash of a blob (BLAKE3, hex).
    Hash
);
text_id!(
    /// A question to the user, `D1`, `D2`, …; unique within a run.
    DecisionId
);
text_id!(
    /// The name of one effect, for instance `round-2/review/adversarial`; unique between two boundaries of a run.
    Key
);
text_id!(
    /// A commit of git, as its full object id.
    CommitId
);
text_id!(
    /// A tree of git, as its full object id: the content of all files at one time.
    TreeId
);
text_id!(
    /// The name of a project record, unique among the records of its kind.
    RecordKey
);

impl CommitId {
    /// Returns the first ten digits, which are enough for users.
    pub fn short_hex(&self) -> &str {
        self.0.get(..10).unwrap_or(&self.0)
    }
}

impl TreeId {
    /// Returns the first ten digits, which are enough for users.
    pub fn short_hex(&self) -> &str {
        self.0.get(..10).unwrap_or(&self.0)
    }
}

impl Hash {
    pub fn digest_of(bytes: &[u8]) -> Hash {
        // Hexadecimal text, since hashes are part of journals, file names and messages.
        Hash(blake3::hash(bytes).to_hex().to_string())
    }

    /// Returns the first twelve digits, which are enough for users.
    pub fn short_hex(&self) -> &str {
        // `Hash::new` takes any text, so it can be shorter than that.
        self.0.get(..12).unwrap_or(&self.0)
    }
}

/// Computes a hash piece by piece, for content that is too long to hold in memory.
#[derive(Clone, Debug, Default)]
pub struct ContentHasher(blake3::Hasher);

impl ContentHasher {
    pub fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    pub fn finish(&self) -> Hash {
        Hash(self.0.finalize().to_hex().to_string())
    }
}

impl Key {
    /// Returns the key `parent/child`.
    pub fn child_key(&self, segment: &str) -> Key {
        Key(format!("{}/{segment}", self.0))
    }
}

/// A finding of one run: `F1`, `F2`, … in the order in which they were added; within a round by place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, schemars::JsonSchema)]
#[schemars(with = "String")]
pub struct FindingId(pub u32);

impl FindingId {
    pub fn parse(id_text: &str) -> Option<FindingId> {
        // Users also type `f3`.
        let digits = id_text.strip_prefix('F').or_else(|| id_text.strip_prefix('f'))?;
        digits.parse().ok().map(FindingId)
    }
}

impl fmt::Display for FindingId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "F{}", self.0)
    }
}

impl ToJson for FindingId {
    fn to_node(&self) -> Node<'_> {
        Node::Text(self.to_string().into())
    }
}

impl FromJson for FindingId {
    fn from_value(value: serde_json::Value) -> Result<FindingId, JsonError> {
        let id_text = String::from_value(value)?;
        FindingId::parse(&id_text)
            .ok_or_else(|| JsonError::new(format!("`{id_text}` is not a finding id (expected something like F3)")))
    }
}

tribunal_json::serde_by_json!(FindingId);

/// The id of the entry with the request of an effect.
pub(crate) fn started_entry_id(segment: u32, effect_key: &Key) -> String {
    format!("{segment}:started:{effect_key}")
}
