//! A repeatable source of chance (SplitMix64): a seed determines a whole test case.

#[derive(Clone, Debug)]
pub struct Dice(u64);

impl Dice {
    pub fn new(seed: u64) -> Dice {
        Dice(seed)
    }

    fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Returns 0 to `sides - 1`, and 0 for no sides at all.
    pub fn roll(&mut self, sides: usize) -> usize {
        if sides == 0 { 0 } else { (self.next_u64() % sides as u64) as usize }
    }

    /// Returns true with the given percentage.
    pub fn roll_percent(&mut self, percentage: usize) -> bool {
        self.roll(100) < percentage
    }

    pub fn pick<'a, T>(&mut self, choices: &'a [T]) -> &'a T {
        &choices[self.roll(choices.len())]
    }
}
