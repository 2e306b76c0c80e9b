//! Thumbnails.

use std::io::Cursor;

use admit::Cost;
use image::codecs::jpeg::JpegDecoder;
use image::codecs::png::PngDecoder;
use image::error::{LimitError, LimitErrorKind};
use image::{
    DynamicImage, GenericImageView, ImageDecoder, ImageError, ImageFormat, ImageResult, Limits,
};

use super::jpeg::{self, Frame};
use super::png::{self, Picture};

/// A thumbnail fits into a square of so many pixels.
const SIDE: u32 = 256;
/// What a decoder has whatever the picture is, and the thumbnail.
const DECODER_BYTES: u64 = 2 << 20;
/// Rows that a PNG decoder has at once: the one before, the one it works on, and what it unpacks them
/// from; a vector that grows is there twice.
const PNG_ROWS: u64 = 8;
const JPEG_BLOCK_SIDE: u64 = 8;
/// Coefficients and samples that have not been converted yet.
const JPEG_SAMPLE_BYTES: u64 = 2;
/// How often a JPEG decoder has a row of blocks: as samples, scaled up, and as the rows between two such.
const JPEG_ROWS_OF_BLOCKS: u64 = 4;

/// What the job needs to know of a picture before it is decoded.
#[derive(Debug)]
pub(crate) struct Header {
    format: ImageFormat,
    pixels_bytes: u64,
    decoder_bytes: u64,
}

impl Header {
    /// From what comes before the pixels.
    pub(crate) fn read(file: &[u8]) -> Result<Header, String> {
        match image::guess_format(file) {
            Ok(format @ ImageFormat::Jpeg) => {
                let frame = Frame::read(file).ok_or("this JPEG has no readable header")?;
                // The decoder panics at some pictures with four.
                if !matches!(frame.samplings.len(), 1 | 3) {
                    let components = frame.samplings.len();
                    return Err(format!("a JPEG with {components} components is not supported"));
                }
                let pixels = u64::from(frame.width) * u64::from(frame.height);
                Ok(Header {
                    format,
                    pixels_bytes: pixels * frame.samplings.len() as u64,
                    // It makes a copy of the file.
                    decoder_bytes: DECODER_BYTES + jpeg_bytes(&frame) + file.len() as u64,
                })
            }
            Ok(format @ ImageFormat::Png) => {
                let picture = Picture::read(file).ok_or("this PNG has no readable header")?;
                Ok(Header {
                    format,
                    pixels_bytes: picture.row_bytes().saturating_mul(picture.height.into()),
                    decoder_bytes: DECODER_BYTES + PNG_ROWS * picture.row_bytes(),
                })
            }
            Ok(_) | Err(_) => Err(String::from("a picture has to be PNG or JPEG")),
        }
    }

    pub(crate) fn cost(&self, input_bytes: u64) -> Cost {
        Cost::new(self.pixels_bytes.saturating_add(self.decoder_bytes)).input(input_bytes)
    }

    /// A PNG that is no wider and no higher than a thumbnail may be.
    pub(crate) fn thumbnail(&self, mut file: Vec<u8>) -> Result<Vec<u8>, String> {
        match self.format {
            ImageFormat::Jpeg => jpeg::strip(&mut file),
            _ => png::strip(&mut file),
        }
        self.decode_and_shrink(&file).map_err(|why| why.to_string())
    }

    fn decode_and_shrink(&self, file: &[u8]) -> ImageResult<Vec<u8>> {
        let thumbnail = match self.format {
            ImageFormat::Jpeg => self.shrink(JpegDecoder::new(Cursor::new(file))?)?,
            _ => {
                let mut limits = Limits::no_limits();
                limits.max_alloc = Some(self.pixels_bytes.saturating_add(self.decoder_bytes));
                self.shrink(PngDecoder::with_limits(Cursor::new(file), limits)?)?
            }
        };
        let mut output = Vec::new();
        thumbnail.write_to(&mut Cursor::new(&mut output), ImageFormat::Png)?;
        output.shrink_to_fit();
        Ok(output)
    }

    fn shrink(&self, mut decoder: impl ImageDecoder) -> ImageResult<DynamicImage> {
        // The decoder has read the header itself, and may differ.
        if decoder.total_bytes() > self.pixels_bytes {
            return Err(ImageError::Limits(LimitError::from_kind(LimitErrorKind::DimensionError)));
        }
        let orientation = decoder.orientation()?;
        let picture = DynamicImage::from_decoder(decoder)?;
        let (width, height) = picture.dimensions();
        let mut thumbnail =
            if width.max(height) > SIDE { picture.thumbnail(SIDE, SIDE) } else { picture };
        thumbnail.apply_orientation(orientation);
        Ok(thumbnail)
    }
}

/// What a decoder needs beside the pixels.
fn jpeg_bytes(frame: &Frame) -> u64 {
    let most =
        |factor: fn(&(u8, u8)) -> u8| frame.samplings.iter().map(factor).max().map_or(1, u64::from);
    let (most_h, most_v) = (most(|sampling| sampling.0), most(|sampling| sampling.1));
    let blocks = |pixels: u16, factor: u64| u64::from(pixels).div_ceil(JPEG_BLOCK_SIDE * factor);
    let (wide, high) = (blocks(frame.width, most_h), blocks(frame.height, most_v));
    let block_samples = JPEG_BLOCK_SIDE * JPEG_BLOCK_SIDE;
    let row_of_blocks = wide * most_h * most_v * block_samples * frame.samplings.len() as u64;
    let kept = match frame.is_one_pass {
        true => 0,
        false => {
            frame.samplings.iter().map(|(h, v)| u64::from(*h) * u64::from(*v)).sum::<u64>()
                * wide
                * high
                * block_samples
        }
    };
    JPEG_SAMPLE_BYTES * (JPEG_ROWS_OF_BLOCKS * row_of_blocks + kept)
}
