//! Chance from a seed: the same seed gives the same worlds on every machine and with every version of anything.

/// A generator of the kind called splitmix64: one addition and three mixing steps a number.
#[derive(Clone, Debug)]
pub struct Dice(u64);

impl Dice {
    /// Dice of their own for every world, so that one world can be made again without those before it.
    pub fn new(seed: u64, world: usize) -> Self {
        let mut dice = Self(seed ^ (world as u64).wrapping_mul(0xd134_2543_de82_ef95));
        dice.next();
        dice
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// One of `0..n`; zero for zero.
    pub fn below(&mut self, n: usize) -> usize {
        if n == 0 { 0 } else { usize::try_from(self.next() % n as u64).expect("less than a usize") }
    }

    /// One of `least..=most`.
    pub fn range(&mut self, least: usize, most: usize) -> usize {
        least + self.below(most - least + 1)
    }

    /// Yes in so many cases of a hundred.
    pub fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    /// One of them.
    pub fn pick<'a, T: ?Sized>(&mut self, of: &[&'a T]) -> &'a T {
        of[self.below(of.len())]
    }

    /// Some of them, in their order, each with that chance in a hundred.
    pub fn some<'a, T: ?Sized>(&mut self, of: &[&'a T], percent: usize) -> Vec<&'a T> {
        of.iter().copied().filter(|_| self.chance(percent)).collect()
    }
}
