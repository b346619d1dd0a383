// Names the language of the page, which Streamlit leaves at English.
export default function ({ data }) {
  document.documentElement.lang = data.language;
}
