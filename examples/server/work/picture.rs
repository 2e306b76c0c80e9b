//! Thumbnails.

use std::io::Cursor;

use admit::Cost;
use image::codecs::jpeg::JpegDecoder;
use image::codecs::png::PngDecoder;
use image::{DynamicImage, GenericImageView, ImageDecoder, ImageFormat, ImageResult, Limits};

use super::jpeg::Frame;

/// A thumbnail fits into a square of so many pixels.
const SIDE: u32 = 256;
/// What a decoder has beside the picture and one copy of its input: tables and rows.
const DECODER_BYTES: u64 = 2 << 20;
/// Two bytes each, and at worst one of every component for every pixel.
const COEFFICIENT_BYTES: u64 = 2;
/// A picture is padded to whole blocks, of at most so many pixels.
const BLOCK_SIDE: u64 = 32;

/// What the job needs to know of a picture before it is decoded.
#[derive(Debug)]
pub(crate) struct Header {
    format: ImageFormat,
    working_bytes: u64,
}

impl Header {
    /// From the first bytes of the file. The pixels are not looked at.
    pub(crate) fn read(file: &[u8]) -> Result<Header, String> {
        match image::guess_format(file) {
            Ok(format @ ImageFormat::Jpeg) => {
                let frame = Frame::read(file).ok_or("this JPEG has no readable header")?;
                let working_bytes = jpeg_bytes(&frame, file.len() as u64)?;
                Ok(Header { format, working_bytes })
            }
            Ok(format @ ImageFormat::Png) => {
                let decoder = png(file, DECODER_BYTES).map_err(|why| why.to_string())?;
                let working_bytes = decoder.total_bytes().saturating_add(DECODER_BYTES);
                Ok(Header { format, working_bytes })
            }
            Ok(_) | Err(_) => Err(String::from("a picture has to be PNG or JPEG")),
        }
    }

    pub(crate) fn cost(&self, input_bytes: u64) -> Cost {
        Cost::new(self.working_bytes).input(input_bytes)
    }

    /// A PNG that is no wider and no higher than a thumbnail may be.
    pub(crate) fn thumbnail(&self, file: &[u8]) -> Result<Vec<u8>, String> {
        self.decode_and_shrink(file).map_err(|why| why.to_string())
    }

    fn decode_and_shrink(&self, file: &[u8]) -> ImageResult<Vec<u8>> {
        let thumbnail = match self.format {
            ImageFormat::Jpeg => shrink(JpegDecoder::new(Cursor::new(file))?)?,
            _ => shrink(png(file, self.working_bytes)?)?,
        };
        let mut output = Vec::new();
        thumbnail.write_to(&mut Cursor::new(&mut output), ImageFormat::Png)?;
        output.shrink_to_fit();
        Ok(output)
    }
}

fn png(file: &[u8], most_bytes: u64) -> ImageResult<PngDecoder<Cursor<&[u8]>>> {
    let mut limits = Limits::no_limits();
    limits.max_alloc = Some(most_bytes);
    PngDecoder::with_limits(Cursor::new(file), limits)
}

fn shrink(mut decoder: impl ImageDecoder) -> ImageResult<DynamicImage> {
    let orientation = decoder.orientation()?;
    let picture = DynamicImage::from_decoder(decoder)?;
    let (width, height) = picture.dimensions();
    let mut thumbnail =
        if width.max(height) > SIDE { picture.thumbnail(SIDE, SIDE) } else { picture };
    thumbnail.apply_orientation(orientation);
    Ok(thumbnail)
}

/// The pixels, a copy of the file, and where there are several passes the coefficients.
fn jpeg_bytes(frame: &Frame, file_bytes: u64) -> Result<u64, String> {
    // The decoder panics at some pictures with four.
    if !matches!(frame.components, 1 | 3) {
        return Err(format!("a JPEG with {} components is not supported", frame.components));
    }
    let padded = |pixels: u16| u64::from(pixels).next_multiple_of(BLOCK_SIDE);
    let samples = padded(frame.width) * padded(frame.height) * u64::from(frame.components);
    let sample_bytes = if frame.is_one_pass { 1 } else { 1 + COEFFICIENT_BYTES };
    Ok(samples * sample_bytes + file_bytes + DECODER_BYTES)
}
