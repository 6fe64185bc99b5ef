//! The words of an enum as users read and type them.

/// Gives an enum `as_str` and `Display` from one list of words.
#[macro_export]
macro_rules! words {
    ($type:ident { $($variant:ident = $word:literal),* $(,)? }) => {
        impl $type {
            pub fn as_str(self) -> &'static str {
                match self { $($type::$variant => $word),* }
            }
        }
        impl core::fmt::Display for $type {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                f.write_str(self.as_str())
            }
        }
    };
}
pub use words;
