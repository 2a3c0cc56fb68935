//! The type of regions, of which there are none.

use std::convert::Infallible;
use std::marker::PhantomData;
use std::ops::Range;
use std::sync::Arc;

use crate::access_method::AccessMethod;
use crate::balancing::Inner;

/// Memory that a [`Balancer`](crate::Balancer) manages. On this system there is none, because
/// registering fails with [`UnsupportedPlatform`](crate::RegisterError::UnsupportedPlatform): no method is ever
/// called.
#[derive(Debug)]
pub struct Region(Infallible);

impl Region {
    pub(crate) fn new(entry: Infallible, _balancer: Arc<Inner>) -> Region {
        match entry {}
    }

    /// Reports that the calling thread uses the memory at an offset from the region's start.
    #[inline(always)]
    pub fn touch(&self, _offset: usize) {
        match self.0 {}
    }

    /// Reports that the calling thread uses all of the region.
    pub fn touch_all(&self) {
        match self.0 {}
    }

    /// Returns the addresses of the region.
    pub fn range(&self) -> Range<usize> {
        match self.0 {}
    }

    /// Returns the method by which accesses are detected.
    pub fn access(&self) -> AccessMethod {
        match self.0 {}
    }

    /// Keeps a part of a trapped region accessible until the returned value is dropped.
    #[must_use = "the memory is armed again once this is dropped"]
    pub fn exclude(&self, _part: Range<usize>) -> Exclusion<'_> {
        match self.0 {}
    }
}

/// A guard that keeps a part of a region accessible; see [`Region::exclude`].
#[derive(Debug)]
pub struct Exclusion<'r>(Infallible, PhantomData<&'r Region>);
