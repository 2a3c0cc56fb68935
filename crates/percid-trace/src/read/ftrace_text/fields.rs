//! Takes lines apart.

/// A number in decimal digits.
pub(in crate::read) fn number(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() {
        return None;
    }
    digits.iter().try_fold(0u64, |number, &digit| {
        let digit = digit.checked_sub(b'0').filter(|&digit| digit < 10)?;
        number.checked_mul(10)?.checked_add(digit.into())
    })
}

/// A number of a thread or CPU, as the kernel's 32 bits: some are written with a sign.
pub(in crate::read) fn id(digits: &[u8]) -> Option<u32> {
    match digits.strip_prefix(b"-") {
        Some(digits) => number(digits).and_then(|id| u32::try_from(id).ok()).map(u32::wrapping_neg),
        None => number(digits).and_then(|id| u32::try_from(id).ok()),
    }
}

/// A number in hexadecimal digits.
pub(super) fn hex(digits: &[u8]) -> Option<u64> {
    u64::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}

/// Returns nanoseconds from seconds with six to nine digits after the dot.
pub(in crate::read) fn seconds(text: &[u8]) -> Option<u64> {
    let dot = text.iter().rposition(|&byte| byte == b'.')?;
    let (whole, digits) = (number(&text[..dot])?, &text[dot + 1..]);
    let missing = 9usize.checked_sub(digits.len()).filter(|&missing| missing <= 3)?;
    let part = number(digits)? * 10u64.pow(missing as u32);
    whole.checked_mul(1_000_000_000)?.checked_add(part)
}

/// Returns all numbers in a text, whatever is between them.
pub(super) fn numbers(text: &[u8]) -> impl Iterator<Item = u64> + '_ {
    text.split(|byte| !byte.is_ascii_digit()).filter_map(number)
}

/// Returns the last position of a text in a line.
pub(super) fn last(line: &[u8], text: &[u8]) -> Option<usize> {
    line.windows(text.len()).rposition(|window| window == text)
}

/// The words of a line that were not taken yet.
pub(in crate::read) struct Words<'a>(pub(in crate::read) &'a [u8]);

impl<'a> Words<'a> {
    /// Takes the next word, up to a blank.
    pub(in crate::read) fn next(&mut self) -> &'a [u8] {
        let line = self.0.trim_ascii_start();
        let end = line.iter().position(|byte| *byte == b' ').unwrap_or(line.len());
        self.0 = &line[end..];
        &line[..end]
    }
}

/// The longest name of a thread that kernels of vendors keep.
pub(super) const LONGER_NAME: usize = 63;

/// The fields of an event, taken from its end: `comm=sh pid=12 prio=120`.
#[derive(Clone, Copy)]
pub(super) struct Body<'a>(pub(super) &'a [u8]);

impl<'a> Body<'a> {
    /// Takes the last value, which must have this name in front of it, such as ` pid=`.
    pub(super) fn last(&mut self, name: &[u8]) -> Option<&'a [u8]> {
        let at = last(self.0, name)?;
        let value = &self.0[at + name.len()..];
        self.0 = &self.0[..at];
        Some(value)
    }

    /// Takes the last value as a number of a thread or CPU.
    pub(super) fn id(&mut self, name: &[u8]) -> Option<u32> {
        self.last(name).and_then(id)
    }

    /// Takes the value that the kernel writes last. Kernels of vendors may write more behind it: `
    /// state=W`.
    pub(super) fn last_word(&mut self, name: &[u8]) -> Option<&'a [u8]> {
        let mut words = Words(self.last(name)?);
        let value = words.next();
        let is_value = |word: &[u8]| word.contains(&b'=');
        let mut more = std::iter::repeat_with(|| words.next()).take_while(|word| !word.is_empty());
        more.all(is_value).then_some(value)
    }

    /// Takes the last value as the number of a thread or CPU.
    pub(super) fn last_id(&mut self, name: &[u8]) -> Option<u32> {
        self.last_word(name).and_then(id)
    }

    /// Takes the last value if it has this name and is a number.
    pub(super) fn optional(&mut self, name: &[u8]) {
        let mut rest = *self;
        if rest.id(name).is_some() {
            *self = rest;
        }
    }

    /// Returns the rest, which must begin with this name.
    pub(super) fn first(self, name: &[u8]) -> Option<&'a [u8]> {
        self.0.strip_prefix(name)
    }

    /// Splits the body at `middle`, which at most `longest` bytes follow, or more if a kernel
    /// stores longer names. Names may contain `middle` too, so the result of `left` for the text
    /// before it decides which one it is.
    pub(super) fn split<T>(
        self,
        middle: &[u8],
        longest: usize,
        left: impl Fn(Body<'a>) -> Option<T>,
    ) -> Option<(T, &'a [u8])> {
        self.split_near_end(middle, longest, &left)
            .or_else(|| self.split_near_end(middle, longest.max(LONGER_NAME), &left))
    }

    fn split_near_end<T>(
        self,
        middle: &[u8],
        longest: usize,
        left: &impl Fn(Body<'a>) -> Option<T>,
    ) -> Option<(T, &'a [u8])> {
        let all = self.0;
        let first = all.len().saturating_sub(middle.len() + longest);
        all[first..]
            .windows(middle.len())
            .zip(first..)
            .filter(|&(window, _)| window == middle)
            .find_map(|(_, at)| Some((left(Body(&all[..at]))?, &all[at + middle.len()..])))
    }
}
